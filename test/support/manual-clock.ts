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
  readonly #timers = new Set<Timer>();

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
    return this.#timers.size;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { due: this.#passed + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
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
    let next: Timer | null = null;
    for (const timer of this.#timers)
      if (timer.due <= end && (next === null || timer.due < next.due)) next = timer;
    if (next === null) return false;
    this.#timers.delete(next);
    this.#passed = Math.max(this.#passed, next.due);
    next.callback();
    return true;
  }
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
