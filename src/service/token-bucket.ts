import type { Clock } from '../core/clock.ts';
import { wait } from './wait.ts';

export interface RateLimit {
  /** Requests a second in the long run. */
  readonly perSecond: number;
  /** Requests that may go out at once after a pause. Default: one second's worth, at least 1. */
  readonly burst?: number;
}

/** Paces requests, first come first served. `null` as the limit paces nothing but still honours `pause`. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #perMs: number;
  readonly #burst: number;
  #tokens: number;
  #filledAt: number;
  #pausedUntil = 0;
  #line: Promise<void> = Promise.resolve();

  constructor(limit: RateLimit | null, clock: Clock) {
    this.#clock = clock;
    this.#perMs = limit === null ? Infinity : limit.perSecond / 1000;
    this.#burst = limit === null ? Infinity : (limit.burst ?? Math.max(1, Math.floor(limit.perSecond)));
    this.#tokens = this.#burst;
    this.#filledAt = clock.monotonic();
  }

  /** Resolves when a request may go out. @throws the signal's reason when it aborts */
  async take(signal?: AbortSignal): Promise<void> {
    const turn = this.#line.then(() => this.#takeInTurn(signal));
    this.#line = turn.catch(() => undefined);
    await turn;
  }

  /** Holds every request back for a while: one answer of 429 speaks for all that would follow it. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.monotonic() + ms);
  }

  async #takeInTurn(signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      const now = this.#clock.monotonic();
      if (this.#burst !== Infinity) {
        this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#filledAt) * this.#perMs);
        this.#filledAt = now;
      }
      const paused = this.#pausedUntil - now;
      // A rounding error below one token must not turn into a wait of a fraction that a timer rounds to nothing.
      const short = this.#tokens >= 1 - 1e-9 ? 0 : Math.ceil((1 - this.#tokens) / this.#perMs);
      const ms = Math.max(paused, short);
      if (ms <= 0) break;
      await wait(this.#clock, ms, signal);
    }
    signal?.throwIfAborted();
    if (this.#burst !== Infinity) this.#tokens -= 1;
  }
}
