import { bodyHashOf, eventHashesOf } from '../identity.ts';
import { identityOf } from '../segments/records.ts';

/** Words of 32 bits: three of the id's digest, two of the bytes', the second of receipt, the offset plus one (low, high). */
const WORDS = 8;
const [SECOND, LOW, HIGH] = [5, 6, 7];
const SMALLEST = 1024;
/** Share of used slots above which the table grows; after that it has 0.6 of it at most. */
const FULL = 0.7;

/** 20 bytes for the source and the id, and for the bytes: these cannot be guessed without the id. */
export type Fingerprint = Buffer;

export const FINGERPRINT_BYTES = 20;

/** @param key the id within its source */
export function fingerprintOf(source: string, key: string, body: Buffer): Fingerprint {
  const known = eventHashesOf(identityOf(source, key), bodyHashOf(body));
  return Buffer.from(known.key + known.digest, 'latin1');
}

/** The id of a record, as the log has it. */
export interface IdAt {
  readonly print: Fingerprint;
  /** Of receipt. */
  readonly second: number;
  readonly offset: number;
}

export type Verdict = 'first' | 'duplicate' | 'reused';

/**
 * The ids of consecutive records of one partition, each with the offset of its first record: 32 bytes an id in one block of
 * memory. Its answers follow from the log alone, whatever was noted before, and however often.
 */
export class IdTable {
  readonly #window: number;
  #slots = new Uint32Array(SMALLEST * WORDS);
  #count = 0;
  #newestSecond = 0;

  /** @param window seconds after which an id is new again */
  constructor(window: number) {
    this.#window = window;
  }

  get size(): number {
    return this.#count;
  }

  /** Whether it was noted with these bytes. */
  has(print: Fingerprint): boolean {
    const at = this.#find(print);
    return this.#offsetAt(at) !== null && this.#hasBytes(at, print);
  }

  /**
   * Notes a record, and says what it is: a duplicate has the id and bytes of a record before it that is within the window;
   * with other bytes the id is reused. A record that was noted before is what it was then.
   */
  note(print: Fingerprint, second: number, offset: number): Verdict {
    if ((this.#count + 1) * WORDS > this.#slots.length * FULL) this.#grow();
    this.#newestSecond = Math.max(this.#newestSecond, second);
    const at = this.#find(print);
    const known = this.#offsetAt(at);
    if (known === null) {
      this.#count += 1;
      this.#put(at, print, second, offset);
      return 'first';
    }
    if (known === offset) return 'first';
    const near = Math.abs(second - (this.#slots[at + SECOND] ?? 0)) <= this.#window;
    if (known < offset && near) return this.#hasBytes(at, print) ? 'duplicate' : 'reused';
    // `known` is later: the log was read from further on before, and this record is the first.
    if (known < offset || near) this.#put(at, print, second, offset);
    return 'first';
  }

  #hasBytes(at: number, print: Fingerprint): boolean {
    return this.#slots[at + 3] === print.readUInt32LE(12) && this.#slots[at + 4] === print.readUInt32LE(16);
  }

  #find(print: Fingerprint): number {
    return slotOf(this.#slots, print.readUInt32LE(0), print.readUInt32LE(4), print.readUInt32LE(8));
  }

  #put(at: number, print: Fingerprint, second: number, offset: number): void {
    for (let word = 0; word < 5; word += 1) this.#slots[at + word] = print.readUInt32LE(word * 4);
    this.#slots[at + SECOND] = second;
    this.#slots[at + LOW] = (offset + 1) % 2 ** 32;
    this.#slots[at + HIGH] = Math.floor((offset + 1) / 2 ** 32);
  }

  #offsetAt(at: number): number | null {
    const stored = (this.#slots[at + HIGH] ?? 0) * 2 ** 32 + (this.#slots[at + LOW] ?? 0);
    return stored === 0 ? null : stored - 1;
  }

  /** Drops ids past the window; doubles the table if that frees too little. */
  #grow(): void {
    const old = this.#slots;
    const oldest = this.#newestSecond - this.#window;
    const isKept = (at: number): boolean => this.#offsetAt(at) !== null && (old[at + SECOND] ?? 0) >= oldest;
    let kept = 0;
    for (let at = 0; at < old.length; at += WORDS) if (isKept(at)) kept += 1;
    let places = SMALLEST;
    while (kept > places * FULL * 0.6) places *= 2;
    const slots = new Uint32Array(places * WORDS);
    for (let at = 0; at < old.length; at += WORDS) {
      if (!isKept(at)) continue;
      const to = slotOf(slots, old[at] as number, old[at + 1] as number, old[at + 2] as number);
      slots.set(old.subarray(at, at + WORDS), to);
    }
    this.#slots = slots;
    this.#count = kept;
  }
}

/** The slot of an id: where it is, or the empty one where it would be. */
function slotOf(slots: Uint32Array, a: number, b: number, c: number): number {
  const places = slots.length / WORDS;
  for (let place = a & (places - 1); ; place = (place + 1) & (places - 1)) {
    const at = place * WORDS;
    if (slots[at + LOW] === 0 && slots[at + HIGH] === 0) return at;
    if (slots[at] === a && slots[at + 1] === b && slots[at + 2] === c) return at;
  }
}

/** The last ids that this process had confirmed, in two generations: when the younger is full the older is dropped. */
export class RecentIds {
  readonly #most: number;
  #young = new IdTable(Infinity);
  #old = new IdTable(Infinity);

  /** @param most ids of a generation */
  constructor(most: number) {
    this.#most = most;
  }

  has(print: Fingerprint): boolean {
    return this.#young.has(print) || this.#old.has(print);
  }

  add(print: Fingerprint): void {
    this.#young.note(print, 0, 0);
    if (this.#young.size < this.#most) return;
    this.#old = this.#young;
    this.#young = new IdTable(Infinity);
  }
}

const NOTHING = Buffer.alloc(0);

/** For `RecentIds`: the same id with other bytes is another one. @param kind what the event becomes */
export function recentPrint(kind: string, source: string, key: string, body: Buffer): Fingerprint {
  return fingerprintOf(`${kind} ${source}`, bodyHashOf(body) + key, NOTHING);
}
