import { getOrMake } from './get-or-make.ts';

/** Numbers of one block, which has 2 KiB. */
const BLOCK = 16_384;

/** A set of millions of whole numbers from 0 on: a bit for each number of the blocks that have any. */
export class NumberSet {
  readonly #blocks = new Map<number, Block>();
  #size = 0;
  #least = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#size;
  }

  /** The least number; Infinity when the set is empty. */
  get least(): number {
    return this.#least;
  }

  has(number: number): boolean {
    return this.#blocks.get(Math.floor(number / BLOCK))?.has(number % BLOCK) ?? false;
  }

  add(number: number): void {
    const block = getOrMake(this.#blocks, Math.floor(number / BLOCK), () => new Block());
    if (!block.add(number % BLOCK)) return;
    this.#size += 1;
    if (number < this.#least) this.#least = number;
  }

  delete(number: number): void {
    const at = Math.floor(number / BLOCK);
    const block = this.#blocks.get(at);
    if (block?.delete(number % BLOCK) !== true) return;
    this.#size -= 1;
    if (block.size === 0) this.#blocks.delete(at);
    if (number === this.#least) this.#least = this.#seek(number);
  }

  /** The least member that is not below a number; Infinity without one. */
  from(number: number): number {
    return number <= this.#least ? this.#least : this.#seek(number);
  }

  addAll(other: NumberSet): void {
    for (const [at, block] of other.#blocks) {
      if (this.#blocks.has(at)) for (const low of block.values()) this.add(at * BLOCK + low);
      else {
        this.#blocks.set(at, block.copy());
        this.#size += block.size;
      }
    }
    this.#least = Math.min(this.#least, other.#least);
  }

  /** Deletes all members below a number. */
  cut(number: number): void {
    if (this.#least >= number) return;
    for (const [at, block] of this.#blocks) {
      if ((at + 1) * BLOCK > number) continue;
      this.#blocks.delete(at);
      this.#size -= block.size;
    }
    this.#least = this.#seek(0);
    while (this.#least < number) this.delete(this.#least);
  }

  /** Ascending. */
  *values(): Generator<number> {
    for (const at of [...this.#blocks.keys()].toSorted((one, other) => one - other))
      for (const low of this.#blocks.get(at)?.values() ?? []) yield at * BLOCK + low;
  }

  #seek(number: number): number {
    const own = Math.floor(number / BLOCK);
    const low = this.#blocks.get(own)?.from(number % BLOCK);
    if (low !== undefined) return own * BLOCK + low;
    let next = Number.POSITIVE_INFINITY;
    for (const at of this.#blocks.keys()) if (at > own && at < next) next = at;
    const block = this.#blocks.get(next);
    return block === undefined ? Number.POSITIVE_INFINITY : next * BLOCK + (block.from(0) ?? 0);
  }
}

/** Numbers below BLOCK. */
class Block {
  size = 0;
  #bits = new Uint8Array(BLOCK / 8);

  has(low: number): boolean {
    return ((this.#bits[low >>> 3] as number) & (1 << (low & 7))) !== 0;
  }

  /** @returns false when it is a member already */
  add(low: number): boolean {
    if (this.has(low)) return false;
    this.#bits[low >>> 3] = (this.#bits[low >>> 3] as number) | (1 << (low & 7));
    this.size += 1;
    return true;
  }

  /** @returns false when it is no member */
  delete(low: number): boolean {
    if (!this.has(low)) return false;
    this.#bits[low >>> 3] = (this.#bits[low >>> 3] as number) & ~(1 << (low & 7));
    this.size -= 1;
    return true;
  }

  /** The least member that is not below a number. */
  from(low: number): number | undefined {
    for (let each = low; each < BLOCK; each += 1) {
      const byte = (this.#bits[each >>> 3] as number) >>> (each & 7);
      if ((byte & 1) === 1) return each;
      if (byte === 0) each |= 7;
    }
    return undefined;
  }

  /** Ascending. */
  *values(): Generator<number> {
    for (let low = this.from(0); low !== undefined; low = this.from(low + 1)) yield low;
  }

  copy(): Block {
    const copy = new Block();
    copy.size = this.size;
    copy.#bits = this.#bits.slice();
    return copy;
  }
}
