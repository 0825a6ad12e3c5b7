import type { Clock } from '../core/clock.ts';
import { RateWindow } from '../lib/rate-window.ts';
import { wait } from './wait.ts';

export interface RateLimit {
  /** Requests a second, in no second more; after a pause they may go out at once. */
  readonly perSecond: number;
}

/** Paces requests, first come first served. `null` as the limit paces nothing but still honours `pause`. */
export class RequestPace {
  readonly #clock: Clock;
  readonly #window: RateWindow | null;
  #pausedUntil = 0;
  #line: Promise<void> = Promise.resolve();

  constructor(limit: RateLimit | null, clock: Clock) {
    this.#clock = clock;
    this.#window = limit === null ? null : new RateWindow(limit.perSecond);
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
      const ms = Math.max(this.#pausedUntil - now, Math.ceil(this.#window?.wait(now) ?? 0));
      if (ms <= 0) break;
      await wait(this.#clock, ms, signal);
    }
    signal?.throwIfAborted();
    this.#window?.take(this.#clock.monotonic());
  }
}
