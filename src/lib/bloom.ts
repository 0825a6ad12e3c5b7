/** A set that may answer a wrong yes (1 in 2,000 at the size it was made for) and never a wrong no. `BloomFilters` answers. */
export class BloomFilter {
  readonly bytes: Buffer;
  readonly #mask: number;

  constructor(members: number) {
    // At least 16 for each member; a power of two, so that a mask finds the bit.
    const bits = 2 ** Math.ceil(Math.log2(Math.max(64, members * 16)));
    this.bytes = Buffer.alloc(bits / 8);
    this.#mask = bits - 1;
  }

  /** @param high and `low`: 64 bits of the member's hash */
  add(high: number, low: number): void {
    for (let i = 0; i < PROBES; i += 1) {
      const bit = probe(high, low, i) & this.#mask;
      this.bytes[bit >>> 3] = (this.bytes[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }
}

const PROBES = 7;

function probe(high: number, low: number, index: number): number {
  return (high + Math.imul(index, low | 1)) | 0;
}

/** Filters whose bits are in the same words. */
const BESIDE = 32;

/**
 * Many filters that are asked together. Each word has a bit of each of 32 filters of a size: asking a thousand filters one by one
 * takes a hundred times as long, because each waits for memory.
 */
export class BloomFilters {
  #blocks: Block[] = [];

  /** @param name not in use yet @param bytes of a filter, which are copied */
  add(name: number, bytes: Buffer): void {
    const bits = bytes.length * 8;
    let block = this.#blocks.find((one) => one.bits === bits && one.hasRoom);
    if (block === undefined) this.#blocks.push((block = new Block(bits)));
    block.add(name, bytes);
  }

  remove(name: number): void {
    for (const block of this.#blocks) block.remove(name);
    this.#blocks = this.#blocks.filter((block) => !block.isEmpty);
  }

  /** Names of the filters that answer yes, ascending. */
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
