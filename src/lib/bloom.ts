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
    const step = low | 1;
    for (let i = 0; i < PROBES; i += 1) {
      const bit = (high + Math.imul(i, step)) & this.#mask;
      this.bytes[bit >>> 3] = (this.bytes[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }

  has(high: number, low: number): boolean {
    const step = low | 1;
    for (let i = 0; i < PROBES; i += 1) {
      const bit = (high + Math.imul(i, step)) & this.#mask;
      if (((this.bytes[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
    }
    return true;
  }
}

const PROBES = 7;
