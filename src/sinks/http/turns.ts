import type { Clock } from '../../core/clock.ts';
import { RateWindow } from '../../lib/rate-window.ts';

export interface Pace {
  /** Requests at a time. */
  readonly concurrency: number;
  /** Requests a second; 0: no limit. */
  readonly rate: number;
}

/** What is made up for after a delay, as a part of a second: with more, requests would come in bursts. */
const CATCH_UP = 0.05;
/** Less than two, so that two never go at once, and more than one, so that a timer that is late does not slow the next. */
const LEAST = 1.99;

interface Waiting {
  readonly since: number;
  readonly tell: (isTurn: boolean) => void;
}

/**
 * Whose turn it is to send, first come first served, at most so many at a time and a second. Whoever has waited too long, or
 * is told that it is in vain, waits no more.
 */
export class Turns {
  readonly #pace: Pace;
  readonly #patience: number;
  readonly #clock: Clock;
  readonly #most: number;
  readonly #window: RateWindow | null;
  #waiting: Waiting[] = [];
  /** How many of those at the front have been told. */
  #told = 0;
  #running = 0;
  #tokens: number;
  #filledAt: number;
  /** The timer that is set: when it is due, and what cancels it. */
  #timer: { readonly at: number; readonly cancel: () => void } | null = null;
  /** Set while one at a time is enough. */
  narrow = false;

  /** @param patience milliseconds that one waits at most */
  constructor(pace: Pace, patience: number, clock: Clock) {
    this.#pace = pace;
    this.#patience = patience;
    this.#clock = clock;
    this.#most = Math.max(LEAST, pace.rate * CATCH_UP);
    this.#window = pace.rate === 0 ? null : new RateWindow(pace.rate);
    this.#tokens = 1;
    this.#filledAt = clock.monotonic();
  }

  /** True when it is its turn, until it calls `done`; false when it shall not wait any more. At once if it can be. */
  take(): true | Promise<boolean> {
    const isFree = this.#told === this.#waiting.length && this.#running < this.#lanes;
    if (isFree && this.#hasToken(this.#clock.monotonic())) {
      this.#running += 1;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiting.push({ since: this.#clock.monotonic(), tell: resolve });
    this.#next();
    return promise;
  }

  done(): void {
    this.#running -= 1;
    this.#next();
  }

  /** Whoever waits does so in vain. */
  dismiss(): void {
    const waiting = this.#waiting.slice(this.#told);
    this.#waiting = [];
    this.#told = 0;
    for (const { tell } of waiting) tell(false);
  }

  get #lanes(): number {
    return this.narrow ? 1 : this.#pace.concurrency;
  }

  #next(): void {
    const now = this.#clock.monotonic();
    while (this.#running < this.#lanes && this.#told < this.#waiting.length && this.#hasToken(now)) {
      this.#running += 1;
      this.#tellFirst(true);
    }
    while ((this.#waiting[this.#told]?.since ?? Infinity) <= now - this.#patience) this.#tellFirst(false);
    const first = this.#waiting[this.#told];
    if (first === undefined) return;
    // Without a free lane `done` is what it waits for.
    const token =
      this.#running < this.#lanes
        ? Math.max(((1 - this.#tokens) * 1000) / this.#pace.rate, this.#window?.wait(now) ?? 0)
        : Infinity;
    this.#wakeAt(now + Math.max(1, Math.ceil(Math.min(first.since + this.#patience - now, token))));
  }

  #hasToken(now: number): boolean {
    const { rate } = this.#pace;
    if (rate === 0) return true;
    this.#tokens = Math.min(this.#most, this.#tokens + ((now - this.#filledAt) * rate) / 1000);
    this.#filledAt = now;
    // A rounding error below one must not turn into one more wait.
    if (this.#tokens < 1 - 1e-9 || (this.#window?.wait(now) ?? 0) > 0) return false;
    this.#window?.take(now);
    this.#tokens -= 1;
    return true;
  }

  #tellFirst(isTurn: boolean): void {
    this.#waiting[this.#told]?.tell(isTurn);
    this.#told += 1;
    if (this.#told < 1024 && this.#told < this.#waiting.length) return;
    this.#waiting = this.#waiting.slice(this.#told);
    this.#told = 0;
  }

  #wakeAt(at: number): void {
    if (this.#timer !== null && this.#timer.at <= at) return;
    this.#timer?.cancel();
    const cancel = this.#clock.after(at - this.#clock.monotonic(), () => {
      this.#timer = null;
      this.#next();
    });
    this.#timer = { at, cancel };
  }
}
