/**
 * Which events of one sink are settled, and so how far its cursor may go: to just before the oldest one that is not.
 * Seqs are added in ascending order; each waits for as many settlements as it has deliveries at the sink.
 */
export class OffsetTracker {
  #floor: number;
  #seqs: number[] = [];
  #open: number[] = [];
  #start = 0;

  constructor(floor: number) {
    this.#floor = floor;
  }

  /** Everything up to and including this seq is settled. */
  get floor(): number {
    return this.#floor;
  }

  /** Events added and not yet passed by the floor. */
  get size(): number {
    return this.#seqs.length - this.#start;
  }

  add(seq: number, deliveries: number): void {
    this.#seqs.push(seq);
    this.#open.push(deliveries);
    this.#advance();
  }

  settle(seq: number): void {
    const index = this.#find(seq);
    if (this.#seqs[index] !== seq) return;
    this.#open[index] = (this.#open[index] ?? 1) - 1;
    this.#advance();
  }

  #advance(): void {
    while (this.#start < this.#seqs.length && (this.#open[this.#start] ?? 0) <= 0) {
      this.#floor = this.#seqs[this.#start] ?? this.#floor;
      this.#start += 1;
    }
    if (this.#start > 4096 && this.#start * 2 > this.#seqs.length) {
      this.#seqs = this.#seqs.slice(this.#start);
      this.#open = this.#open.slice(this.#start);
      this.#start = 0;
    }
  }

  #find(seq: number): number {
    // Most settle in order.
    if (this.#seqs[this.#start] === seq) return this.#start;
    let low = this.#start;
    let high = this.#seqs.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#seqs[middle] ?? 0) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
