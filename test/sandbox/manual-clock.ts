import type { Clock } from '../../src/core/clock.ts';

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

/** A clock that stands still until the test moves it. */
export class ManualClock implements Clock {
  #now: number;
  readonly #timers = new Set<Timer>();

  constructor(start: number = Date.UTC(2026, 10, 21)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { due: this.#now + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Goes on by `ms`; what becomes due meanwhile is called in order, at its own time. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      let next: Timer | null = null;
      for (const timer of this.#timers)
        if (timer.due <= end && (next === null || timer.due < next.due)) next = timer;
      if (next === null) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.due);
      next.callback();
    }
    this.#now = end;
  }
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
