/** What happened last to deliveries, to be told of single events; older ones are overwritten. */
const KEPT = 20_000;

export interface Attempt {
  readonly sink: string;
  readonly destination: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly outcome: 'delivered' | 'retried';
  readonly reason: string | null;
}

/** The newest attempts at delivering, by the event's seq. A fixed amount of memory, and a few stores for each. */
export class Deliveries {
  readonly #seqs = new Float64Array(KEPT);
  readonly #attempts = Array.from({ length: KEPT }, (): Attempt | undefined => undefined);
  #next = 0;

  add(seq: number, attempt: Attempt): void {
    this.#seqs[this.#next] = seq;
    this.#attempts[this.#next] = attempt;
    this.#next = (this.#next + 1) % KEPT;
  }

  /** Oldest first. */
  of(seq: number): Attempt[] {
    const found: Attempt[] = [];
    for (let n = 0; n < KEPT; n += 1) {
      const at = (this.#next + n) % KEPT;
      const attempt = this.#seqs[at] === seq ? this.#attempts[at] : undefined;
      if (attempt !== undefined) found.push(attempt);
    }
    return found;
  }

  /** A user was erased: reasons could name them. */
  forget(): void {
    this.#attempts.fill(undefined);
  }
}
