import type { Clock } from '../../src/core/clock.ts';

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

/** A clock that stands still until the test moves it. */
export class ManualClock implements Clock {
  readonly #start: number;
  #passed = 0;
  /** By how much somebody has set the wall clock. */
  offset = 0;
  /** The next one last; of two that are due at once, the older. */
  readonly #timers: Timer[] = [];

  constructor(start: number = Date.UTC(2026, 10, 21)) {
    this.#start = start;
  }

  now(): number {
    return this.#start + this.#passed + this.offset;
  }

  monotonic(): number {
    return this.#passed;
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#timers.length;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { due: this.#passed + ms, callback };
    let [low, high] = [0, this.#timers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#timers[middle]!.due > timer.due) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
    return () => {
      const at = this.#timers.indexOf(timer);
      if (at !== -1) this.#timers.splice(at, 1);
    };
  }

  /** Advances by `ms`; timers that become due are called in order, each at its own time. */
  advance(ms: number): void {
    const end = this.#passed + ms;
    while (this.next(end));
    this.#passed = end;
  }

  /** Jumps by `ms`: timers due in between are called late, as on a busy machine. */
  leap(ms: number): void {
    this.#passed += ms;
    while (this.next(this.#passed));
  }

  /** Advances to the next timer that is due by then and calls it; false when there is none. */
  next(end = Infinity): boolean {
    const next = this.#timers.at(-1);
    if (next === undefined || next.due > end) return false;
    this.#timers.pop();
    this.#passed = Math.max(this.#passed, next.due);
    next.callback();
    return true;
  }
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
