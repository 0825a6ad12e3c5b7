import type { Clock } from '../../core/clock.ts';
import { RateWindow } from '../../lib/rate-window.ts';
import type { HttpOptions } from './config.ts';

/** Limits of requests at a time, and of those a second. */
type Pace = Pick<HttpOptions, 'concurrency' | 'rate'>;

/** Part of a second whose requests may be sent at once after a delay; with more, they would come in bursts. */
const CATCH_UP = 0.05;
/** At least so many requests. Below two, so that two never go at once; above one, so that a late timer does not slow the next. */
const LEAST_BURST = 1.99;

interface Waiter {
  readonly since: number;
  readonly answer: (isTurn: boolean) => void;
}

/** Gives turns to send, first come first served, with a limit of turns at a time and of turns a second. */
export class Turns {
  readonly #pace: Pace;
  readonly #patience: number;
  readonly #clock: Clock;
  /** Milliseconds between two turns; 0: no limit. */
  readonly #interval: number;
  /** Milliseconds by which a turn may come before its time, where earlier ones were late. */
  readonly #tolerance: number;
  readonly #window: RateWindow | null;
  /** When the next turn is due, if each takes its interval. */
  #due: number;
  #waiting: Waiter[] = [];
  #running = 0;
  /** The timer that is set. */
  #timer: { readonly at: number; readonly cancel: () => void } | null = null;
  /** Set while one turn at a time is enough. */
  narrow = false;

  /** @param patience milliseconds after which a waiter is answered false */
  constructor(pace: Pace, patience: number, clock: Clock) {
    this.#pace = pace;
    this.#patience = patience;
    this.#clock = clock;
    this.#interval = pace.rate === 0 ? 0 : 1000 / pace.rate;
    this.#tolerance = this.#interval * (Math.max(LEAST_BURST, pace.rate * CATCH_UP) - 1);
    this.#window = pace.rate === 0 ? null : new RateWindow(pace.rate);
    this.#due = clock.monotonic() + this.#tolerance;
  }

  /** True when it is the caller's turn, until it calls `done`; false when it must not wait longer. A value if that is known at once. */
  take(): true | Promise<boolean> {
    const now = this.#clock.monotonic();
    if (this.#waiting.length === 0 && this.#begin(now)) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiting.push({ since: now, answer: resolve });
    this.#next();
    return promise;
  }

  done(): void {
    this.#running -= 1;
    this.#next();
  }

  /** Answers all waiters false. */
  dismiss(): void {
    for (const { answer } of this.#waiting.splice(0)) answer(false);
  }

  get #lanes(): number {
    return this.narrow ? 1 : this.#pace.concurrency;
  }

  #next(): void {
    const now = this.#clock.monotonic();
    while (this.#waiting.length > 0 && this.#begin(now)) this.#waiting.shift()?.answer(true);
    while ((this.#waiting[0]?.since ?? Infinity) <= now - this.#patience)
      this.#waiting.shift()?.answer(false);
    const [first] = this.#waiting;
    if (first === undefined) return;
    // Without a free lane it waits for `done`.
    const turn = this.#running < this.#lanes ? this.#wait(now) : Infinity;
    this.#wakeAt(now + Math.max(1, Math.ceil(Math.min(first.since + this.#patience - now, turn))));
  }

  /** Begins a turn, if one is free. */
  #begin(now: number): boolean {
    // A rounding error must not become one more wait.
    if (this.#running >= this.#lanes || this.#wait(now) > 1e-6) return false;
    this.#running += 1;
    this.#due = Math.max(this.#due, now) + this.#interval;
    this.#window?.take(now);
    return true;
  }

  /** Milliseconds until the rate allows a turn; 0 or less when it does. */
  #wait(now: number): number {
    if (this.#window === null) return 0;
    return Math.max(this.#due - this.#tolerance - now, this.#window.wait(now));
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
