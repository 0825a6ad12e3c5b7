import type { FeedOptions } from './feed-options.ts';
import type { Progress } from './progress.ts';
import type { SinkCalls } from './sink-calls.ts';

interface Waiter {
  readonly seq: number;
  readonly until: 'sent' | 'settled';
  readonly resolve: () => void;
}

/** Callers that wait until a sink has everything up to some seq. */
export class Waiters {
  readonly #options: FeedOptions;
  readonly #progress: Progress;
  readonly #calls: SinkCalls;
  #waiters: Waiter[] = [];
  #isFlushing = false;

  constructor(options: FeedOptions, progress: Progress, calls: SinkCalls) {
    this.#options = options;
    this.#progress = progress;
    this.#calls = calls;
  }

  /** Resolves when everything up to and including this seq is settled; or, with `sent`, settled or held. */
  passed(seq: number, until: Waiter['until']): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ seq, until, resolve });
    this.moved();
    return promise;
  }

  /** To be called whenever something may have been settled or sent. */
  moved(): void {
    if (this.#waiters.length === 0) return;
    const progress = this.#progress;
    this.#waiters = this.#waiters.filter(({ seq, until, resolve }) => {
      const isOver = until === 'settled' ? seq <= progress.cursor : progress.isSent(seq);
      if (isOver) resolve();
      return !isOver;
    });
    if (this.#isFlushing || !this.#waiters.some(({ seq }) => progress.isSent(seq))) return;
    this.#isFlushing = true;
    void this.#calls.flush().finally(() => {
      const { clock, retry } = this.#options;
      // Again for what has failed, or came since.
      clock.after(retry.max, () => {
        this.#isFlushing = false;
        this.moved();
      });
    });
  }
}
