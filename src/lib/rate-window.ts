/** Times that are remembered at most: nothing here goes faster. */
const MOST = 1_000_000;
/** What is sent later than it was allowed must not come upon what is sent at once. */
const SLACK = 1.01;

/**
 * Holds a rate strictly: no second has more than it says, however unevenly what it lets go is asked for. Whoever wants it spread over the
 * second does that before.
 */
export class RateWindow {
  readonly #times: Float64Array;
  readonly #ms: number;
  #next = 0;

  /** @param perSecond above 0; of one that is not whole, the window is as much longer than a second */
  constructor(perSecond: number) {
    const count = Math.min(MOST, Math.ceil(perSecond));
    this.#times = new Float64Array(count).fill(-Infinity);
    this.#ms = ((count * 1000) / perSecond) * SLACK;
  }

  /** Milliseconds until one more may go; 0 or less when it may now. @param now monotonic milliseconds */
  wait(now: number): number {
    return (this.#times[this.#next] ?? 0) + this.#ms - now;
  }

  /** One goes now. */
  take(now: number): void {
    this.#times[this.#next] = now;
    this.#next = (this.#next + 1) % this.#times.length;
  }
}
