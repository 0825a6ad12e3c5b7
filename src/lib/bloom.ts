/** A set that may say "yes" wrongly (about 1 in 2,000 at the size it was made for) and never "no" wrongly. */
export class BloomFilter {
  readonly bytes: Buffer;
  readonly #mask: number;

  private constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.#mask = bytes.length * 8 - 1;
  }

  /** 16 bits a member or a little more: the number of bits is a power of two, so that a mask finds the bit. */
  static sized(members: number): BloomFilter {
    const bits = 2 ** Math.ceil(Math.log2(Math.max(64, members * 16)));
    return new BloomFilter(Buffer.alloc(bits / 8));
  }

  static from(bytes: Buffer): BloomFilter {
    return new BloomFilter(bytes);
  }

  /** Both words are uniform bits of the member's own hash. */
  add(high: number, low: number): void {
    for (let i = 0; i < PROBES; i += 1) {
      const bit = probe(high, low, i) & this.#mask;
      this.bytes[bit >>> 3] = (this.bytes[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }

  has(high: number, low: number): boolean {
    for (let i = 0; i < PROBES; i += 1) {
      const bit = probe(high, low, i) & this.#mask;
      if (((this.bytes[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
    }
    return true;
  }
}

const PROBES = 7;

function probe(high: number, low: number, index: number): number {
  return (high + Math.imul(index, low | 1)) | 0;
}

/** Filters whose bits share words. */
const BESIDE = 32;

/**
 * Many filters that are asked together. Those of a size stand side by side, a bit of each in every word: to ask one after the
 * other would wait for memory at each of them, and take a hundred times as long for a thousand.
 */
export class BloomFilters {
  #blocks: Block[] = [];

  /** @param name not one that is there @param filter is not kept */
  add(name: number, { bytes }: BloomFilter): void {
    const bits = bytes.length * 8;
    let block = this.#blocks.find((one) => one.bits === bits && one.hasRoom);
    if (block === undefined) this.#blocks.push((block = new Block(bits)));
    block.add(name, bytes);
  }

  remove(name: number): void {
    for (const block of this.#blocks) block.remove(name);
    this.#blocks = this.#blocks.filter((block) => !block.isEmpty);
  }

  /** Names of the filters that say yes, ascending. */
  having(high: number, low: number): readonly number[] {
    const found: number[] = [];
    for (const block of this.#blocks) block.ask(high, low, found);
    return found.length > 1 ? found.sort((one, other) => one - other) : found;
  }
}

class Block {
  readonly bits: number;
  readonly #words: Uint32Array;
  readonly #names: (number | null)[] = Array<null>(BESIDE).fill(null);

  constructor(bits: number) {
    this.bits = bits;
    this.#words = new Uint32Array(bits);
  }

  get hasRoom(): boolean {
    return this.#names.includes(null);
  }

  get isEmpty(): boolean {
    return this.#names.every((name) => name === null);
  }

  add(name: number, bytes: Buffer): void {
    const column = this.#names.indexOf(null);
    this.#names[column] = name;
    for (let at = 0; at < bytes.length; at += 1)
      for (let rest = bytes[at] as number; rest !== 0; rest &= rest - 1) {
        const place = at * 8 + 31 - Math.clz32(rest & -rest);
        this.#words[place] = (this.#words[place] as number) | (1 << column);
      }
  }

  remove(name: number): void {
    const column = this.#names.indexOf(name);
    if (column === -1) return;
    this.#names[column] = null;
    for (let at = 0; at < this.bits; at += 1) this.#words[at] = (this.#words[at] as number) & ~(1 << column);
  }

  ask(high: number, low: number, found: number[]): void {
    let yes = -1;
    for (let i = 0; i < PROBES && yes !== 0; i += 1)
      yes &= this.#words[probe(high, low, i) & (this.bits - 1)] as number;
    for (; yes !== 0; yes &= yes - 1) found.push(this.#names[31 - Math.clz32(yes & -yes)] as number);
  }
}
