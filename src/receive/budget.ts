/** Counts the bytes of all bodies in memory. */
export class Budget {
  readonly max: number;
  used = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** What one request holds of it; given back with `release`. */
  share(): Share {
    return new Share(this);
  }
}

export class Share {
  readonly #budget: Budget;
  #bytes = 0;
  /** What the request has cost so far, in bytes read, decompressed or hashed. */
  work = 0;
  /** Pieces in which its body has come so far. */
  pieces = 0;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** @returns whether there was room. */
  take(bytes: number): boolean {
    if (this.#budget.used + bytes > this.#budget.max) return false;
    this.#budget.used += bytes;
    this.#bytes += bytes;
    return true;
  }

  /** Gives back a part of what was taken. */
  give(bytes: number): void {
    this.#budget.used -= bytes;
    this.#bytes -= bytes;
  }

  release(): void {
    this.give(this.#bytes);
  }
}
