/** Bytes of all bodies in memory, and their limit. */
export class MemoryBudget {
  readonly max: number;
  used = 0;

  constructor(max: number) {
    this.max = max;
  }
}

/** The part of the budget that one request uses: empty at first, and to be released. */
export class Reservation {
  readonly #budget: MemoryBudget;
  #bytes = 0;
  /** Bytes read, decompressed or hashed for the request. */
  work = 0;
  /** Pieces of its body that have come. */
  pieces = 0;

  constructor(budget: MemoryBudget) {
    this.#budget = budget;
  }

  /** @returns false when the budget has too little room */
  take(bytes: number): boolean {
    if (this.#budget.used + bytes > this.#budget.max) return false;
    this.#budget.used += bytes;
    this.#bytes += bytes;
    return true;
  }

  /** Gives back a part. */
  give(bytes: number): void {
    this.#budget.used -= bytes;
    this.#bytes -= bytes;
  }

  release(): void {
    this.give(this.#bytes);
  }
}
