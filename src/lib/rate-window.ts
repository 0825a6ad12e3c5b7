/** Most times remembered; no rate here is higher. */
const MOST = 1_000_000;
/** Lengthens the window a little, because requests leave later than they are allowed. */
const SLACK = 1.01;

/** A strict rate limit: no second has more than it allows. It does not spread requests over the second. */
export class RateWindow {
  readonly #times: Float64Array;
  readonly #ms: number;
  #next = 0;

  /** @param perSecond above 0; for a fraction the window is longer than a second */
  constructor(perSecond: number) {
    const count = Math.min(MOST, Math.ceil(perSecond));
    this.#times = new Float64Array(count).fill(-Infinity);
    this.#ms = ((count * 1000) / perSecond) * SLACK;
  }

  /** Milliseconds until the next request is allowed; 0 or less for now. @param now monotonic milliseconds */
  wait(now: number): number {
    return (this.#times[this.#next] ?? 0) + this.#ms - now;
  }

  /** Counts a request. */
  take(now: number): void {
    this.#times[this.#next] = now;
    this.#next = (this.#next + 1) % this.#times.length;
  }
}
