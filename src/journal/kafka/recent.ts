import { hash } from 'node:crypto';

/** Words of 32 bits that a digest is kept in. */
const WORDS = 4;
/** What is up to this long is hashed without a buffer of its own. */
const SCRATCH = Buffer.allocUnsafeSlow(64 * 1024);

/** A digest of 16 bytes. */
export type Name = Uint32Array;

/**
 * What was confirmed of late, in two generations: when the younger is full the older is forgotten, and its memory used again.
 * Digests in blocks of memory: as many strings in a set are long-lived objects, and half of the collector's work.
 */
export class Recent {
  readonly #most: number;
  readonly #mask: number;
  #young: Uint32Array;
  #old: Uint32Array;
  #count = 0;

  /** @param most how many a generation has */
  constructor(most: number) {
    this.#most = most;
    const places = 2 ** Math.ceil(Math.log2(most * 2));
    this.#mask = places - 1;
    this.#young = new Uint32Array(places * WORDS);
    this.#old = new Uint32Array(places * WORDS);
  }

  has(name: Name): boolean {
    return this.#placeOf(this.#young, name) < 0 || this.#placeOf(this.#old, name) < 0;
  }

  add(name: Name): void {
    const at = this.#placeOf(this.#young, name);
    if (at < 0) return;
    this.#young.set(name, at);
    this.#count += 1;
    if (this.#count < this.#most) return;
    [this.#young, this.#old] = [this.#old, this.#young];
    this.#young.fill(0);
    this.#count = 0;
  }

  /** The empty place where it would stand; -1 where it stands. */
  #placeOf(table: Uint32Array, name: Name): number {
    const [a = 0, b = 0, c = 0, d = 0] = name;
    for (let place = a & this.#mask; ; place = (place + 1) & this.#mask) {
      const at = place * WORDS;
      const first = table[at];
      if (first === a && table[at + 1] === b && table[at + 2] === c && table[at + 3] === d) return -1;
      if (first === 0) return at;
    }
  }
}

function pairAt(digest: string, at: number): number {
  return digest.charCodeAt(at) | (digest.charCodeAt(at + 1) << 8);
}

/** What tells a repetition: the bytes too. @param kind what it becomes */
export function recentName(kind: string, source: string, key: string, body: Buffer): Name {
  const text = `${kind} ${source.length}:${source}${key.length}:${key}`;
  const length = text.length * 3 + body.length;
  const bytes = length <= SCRATCH.length ? SCRATCH : Buffer.allocUnsafe(length);
  const at = bytes.write(text);
  bytes.set(body, at);
  // As a string: a buffer for it takes as long as the hash.
  const digest = hash('sha256', bytes.subarray(0, at + body.length), 'binary');
  const name = new Uint32Array(WORDS);
  for (let word = 0; word < WORDS; word += 1) {
    const from = word * 4;
    const [low, high] = [pairAt(digest, from), pairAt(digest, from + 2)];
    name[word] = low | (high << 16);
  }
  // An empty place has a zero there.
  name[0] ||= 1;
  return name;
}
