/**
 * HalfSipHash-2-4 with 32 bits of output: a keyed hash of short input, about twenty times as fast as an HMAC. Without the key it
 * says nothing about the input. It is too short to identify an input, and only selects those worth a longer check.
 */
export class HalfSip {
  readonly #k0: number;
  readonly #k1: number;

  /** @param key 8 bytes */
  constructor(key: Buffer) {
    this.#k0 = key.readInt32LE(0);
    this.#k1 = key.readInt32LE(4);
  }

  /** Hash of the text's UTF-16 units, low byte first; an unsigned number. */
  ofText(text: string): number {
    const words = text.length >>> 1;
    const odd = text.length % 2 === 1 ? text.charCodeAt(text.length - 1) : 0;
    return this.#hash(words + 1, (index) =>
      index < words
        ? text.charCodeAt(2 * index) | (text.charCodeAt(2 * index + 1) << 16)
        : ((text.length * 2) << 24) | odd,
    );
  }

  #hash(words: number, wordAt: (index: number) => number): number {
    let v0 = this.#k0;
    let v1 = this.#k1;
    let v2 = this.#k0 ^ 0x6c796765;
    let v3 = this.#k1 ^ 0x74656462;
    for (let round = 0; round < 2 * words + 4; round += 1) {
      const isFirst = round % 2 === 0;
      const index = round >>> 1;
      if (isFirst && index < words) v3 ^= wordAt(index);
      if (isFirst && index === words) v2 ^= 0xff;
      v0 = (v0 + v1) | 0;
      v1 = rotate(v1, 5) ^ v0;
      v0 = rotate(v0, 16);
      v2 = (v2 + v3) | 0;
      v3 = rotate(v3, 8) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = rotate(v3, 7) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = rotate(v1, 13) ^ v2;
      v2 = rotate(v2, 16);
      if (!isFirst && index < words) v0 ^= wordAt(index);
    }
    return (v1 ^ v3) >>> 0;
  }
}

function rotate(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}
