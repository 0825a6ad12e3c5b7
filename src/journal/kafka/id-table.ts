import { bodyHashOf, knownBy } from '../identity.ts';
import { identityOf } from '../segments/records.ts';

/** Words of 32 bits: three of the id's digest, two of the bytes', the second it was received, the offset plus one (low, high). */
const WORDS = 8;
const [SECOND, LOW, HIGH] = [5, 6, 7];
const SMALLEST = 1024;
/** Fuller than this it grows. */
const FULL = 0.7;

/** What tells a repetition, in 20 bytes: of the source and the id there, and of the bytes, which nobody can guess at without that id. */
export type Fingerprint = Buffer;

export const FINGERPRINT_BYTES = 20;

/** @param key the id within its source */
export function fingerprintOf(source: string, key: string, body: Buffer): Fingerprint {
  const known = knownBy(identityOf(source, key), bodyHashOf(body));
  return Buffer.from(known.key + known.digest, 'latin1');
}

/** What is to be kept of a record's id: what the log has, and nothing that was decided about it. */
export interface IdAt {
  readonly print: Buffer;
  readonly second: number;
  readonly offset: number;
}

export type Verdict = 'first' | 'duplicate' | 'reused';

/**
 * The ids of a stretch of one partition, each with the offset of its first record: 32 bytes an id in one block of memory.
 * What it answers is decided by the log alone, whatever was noted before, and however often.
 */
export class Ids {
  readonly #window: number;
  #slots = new Uint32Array(SMALLEST * WORDS);
  #count = 0;
  /** The newest second that was noted. */
  #newest = 0;

  /** @param window seconds after which an id is new again */
  constructor(window: number) {
    this.#window = window;
  }

  get size(): number {
    return this.#count;
  }

  /** Whether it was noted, with these bytes. */
  has(print: Fingerprint): boolean {
    const at = this.#find(print);
    return this.#offsetAt(at) !== null && this.#hasBytes(at, print);
  }

  /**
   * Notes a record, and says what it is: a duplicate has the id and bytes of a record before it that is within the window;
   * with other bytes the id is reused. A record that was noted before is what it was then.
   * @param second of its receipt
   */
  note(print: Fingerprint, second: number, offset: number): Verdict {
    if ((this.#count + 1) * WORDS > this.#slots.length * FULL) this.#grow();
    this.#newest = Math.max(this.#newest, second);
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
    // Where the stretch has been read from further on before, the first one is this.
    if (known < offset || near) this.#put(at, print, second, offset);
    return 'first';
  }

  #hasBytes(at: number, print: Fingerprint): boolean {
    return this.#slots[at + 3] === print.readUInt32LE(12) && this.#slots[at + 4] === print.readUInt32LE(16);
  }

  #find(print: Fingerprint): number {
    return placeOf(this.#slots, print.readUInt32LE(0), print.readUInt32LE(4), print.readUInt32LE(8));
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

  /** Leaves out what is past the window, and is twice as large where that was too little. */
  #grow(): void {
    const old = this.#slots;
    const oldest = this.#newest - this.#window;
    const isKept = (at: number): boolean =>
      (old[at + LOW] !== 0 || old[at + HIGH] !== 0) && (old[at + SECOND] ?? 0) >= oldest;
    let kept = 0;
    for (let at = 0; at < old.length; at += WORDS) if (isKept(at)) kept += 1;
    let places = SMALLEST;
    while (kept > places * FULL * 0.6) places *= 2;
    const slots = new Uint32Array(places * WORDS);
    for (let at = 0; at < old.length; at += WORDS)
      if (isKept(at))
        slots.set(
          old.subarray(at, at + WORDS),
          placeOf(slots, old[at] as number, old[at + 1] as number, old[at + 2] as number),
        );
    this.#slots = slots;
    this.#count = kept;
  }
}

/** The place of an id: where it stands, or the empty one where it would. */
function placeOf(slots: Uint32Array, a: number, b: number, c: number): number {
  const places = slots.length / WORDS;
  for (let place = a & (places - 1); ; place = (place + 1) & (places - 1)) {
    const at = place * WORDS;
    if (slots[at + LOW] === 0 && slots[at + HIGH] === 0) return at;
    if (slots[at] === a && slots[at + 1] === b && slots[at + 2] === c) return at;
  }
}

/** What was confirmed of late, in two generations: when the younger is full the older is forgotten. */
export class Recent {
  readonly #most: number;
  #young = new Ids(Infinity);
  #old = new Ids(Infinity);

  /** @param most how many a generation has */
  constructor(most: number) {
    this.#most = most;
  }

  has(name: Fingerprint): boolean {
    return this.#young.has(name) || this.#old.has(name);
  }

  add(name: Fingerprint): void {
    this.#young.note(name, 0, 0);
    if (this.#young.size < this.#most) return;
    this.#old = this.#young;
    this.#young = new Ids(Infinity);
  }
}

const NOTHING = Buffer.alloc(0);

/** What tells a repetition: the bytes too. @param kind what it becomes */
export function recentName(kind: string, source: string, key: string, body: Buffer): Fingerprint {
  return fingerprintOf(`${kind} ${source}`, bodyHashOf(body) + key, NOTHING);
}
