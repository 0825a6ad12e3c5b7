import { ByteWriter } from '../../lib/byte-writer.ts';

/** Longer texts are rarely repeated. */
export const LONGEST_ENTRY = 128;
const FIRST_SLOTS = 64;

/** Numbers texts in the order in which they first came: a hash table of bytes, without strings. */
export class Dictionary {
  size = 0;
  /** The last one that was found: neighbouring rows are similar. */
  #last = -1;
  readonly #texts = new ByteWriter(1024);
  /** End of each text in `#texts`. */
  #ends = new Int32Array(FIRST_SLOTS / 2);
  #hashes = new Int32Array(FIRST_SLOTS / 2);
  /** By hash: the number of a text, plus one. A collision takes the next free slot. */
  #slots = new Int32Array(FIRST_SLOTS);

  /** The number of a text; that of a new text is the old `size`. */
  find(bytes: Uint8Array, from: number, to: number): number {
    if (this.#last >= 0 && this.#isText(this.#last, bytes, from, to)) return this.#last;
    this.#last = this.#search(bytes, from, to);
    return this.#last;
  }

  #search(bytes: Uint8Array, from: number, to: number): number {
    let hash = to - from;
    for (let i = from; i < to; i += 1) hash = (Math.imul(hash, 31) + (bytes[i] as number)) | 0;
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    hash ^= hash >>> 13;
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (;;) {
      const number = (this.#slots[slot] as number) - 1;
      if (number < 0) break;
      if (this.#hashes[number] === hash && this.#isText(number, bytes, from, to)) return number;
      slot = (slot + 1) & mask;
    }
    this.#slots[slot] = this.size + 1;
    return this.#add(hash, bytes, from, to);
  }

  clear(): void {
    if (this.size === 0) return;
    this.size = 0;
    this.#last = -1;
    this.#texts.length = 0;
    this.#slots.fill(0);
  }

  #isText(number: number, bytes: Uint8Array, from: number, to: number): boolean {
    const start = number === 0 ? 0 : (this.#ends[number - 1] as number);
    if ((this.#ends[number] as number) - start !== to - from) return false;
    const { buffer } = this.#texts;
    for (let i = start, j = from; j < to; i += 1, j += 1) if (buffer[i] !== bytes[j]) return false;
    return true;
  }

  #add(hash: number, bytes: Uint8Array, from: number, to: number): number {
    const number = this.size;
    this.size += 1;
    this.#texts.append(bytes.subarray(from, to));
    this.#ends[number] = this.#texts.length;
    this.#hashes[number] = hash;
    if (this.size === this.#hashes.length) this.#grow();
    return number;
  }

  #grow(): void {
    const slots = new Int32Array(this.#slots.length * 2);
    for (let number = 0; number < this.size; number += 1) {
      let slot = (this.#hashes[number] as number) & (slots.length - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
      slots[slot] = number + 1;
    }
    this.#slots = slots;
    this.#ends = doubled(this.#ends);
    this.#hashes = doubled(this.#hashes);
  }
}

/** The numbers in a buffer that is twice as large; the old one cannot be used any more. */
export function doubled(numbers: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  return new Int32Array(numbers.buffer.transfer(numbers.byteLength * 2));
}
