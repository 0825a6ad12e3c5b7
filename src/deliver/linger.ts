import type { Clock } from '../core/clock.ts';

/** For sinks that pay by the call: how long the next batch waits for more to come. */
export class Linger {
  readonly #clock: Clock;
  readonly #ms: number;
  /** Monotonic time of the last `send`. */
  #lastSend = Number.NEGATIVE_INFINITY;
  #waiting = false;

  /** @param ms from the start of one `send` to the start of the next */
  constructor(clock: Clock, ms = 0) {
    this.#clock = clock;
    this.#ms = ms;
  }

  sent(): void {
    this.#lastSend = this.#clock.monotonic();
  }

  /** True when the next batch is to wait; `over` is called when it is not to any more. */
  holds(over: () => void): boolean {
    if (this.#ms === 0) return false;
    const left = this.#lastSend + this.#ms - this.#clock.monotonic();
    if (left <= 0) return false;
    if (this.#waiting) return true;
    this.#waiting = true;
    this.#clock.after(left, () => {
      this.#waiting = false;
      over();
    });
    return true;
  }
}
