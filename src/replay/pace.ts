import { setTimeout as wait } from 'node:timers/promises';

/** Milliseconds that what was not used may be caught up on: a replay is steady, and never makes up for a pause. */
const CATCH_UP = 100;

/** Spreads events evenly over time. */
export class Pace {
  readonly #gap: number;
  #due = performance.now();

  /** @param perSecond events; null holds nothing back */
  constructor(perSecond: number | null) {
    this.#gap = perSecond === null ? 0 : 1000 / perSecond;
  }

  /** Resolves when the next event may go. @throws the signal's reason */
  async next(signal: AbortSignal): Promise<void> {
    if (this.#gap === 0) return;
    const now = performance.now();
    this.#due = Math.max(this.#due + this.#gap, now - CATCH_UP);
    // A timer is no finer than a millisecond; what is due sooner goes at once, and the next one later.
    if (this.#due - now >= 1) await wait(this.#due - now, undefined, { signal });
  }
}
