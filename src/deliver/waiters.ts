import type { Progress } from './progress.ts';

interface Waiter {
  readonly seq: number;
  readonly until: 'sent' | 'settled';
  readonly resolve: () => void;
}

/** Callers that wait until a sink has everything up to some seq. */
export class Waiters {
  readonly #progress: Progress;
  readonly #flush: () => Promise<void>;
  readonly #later: (callback: () => void) => void;
  #waiters: Waiter[] = [];
  #isFlushing = false;

  /**
   * @param flush makes the sink confirm what it holds; never rejects
   * @param later calls back when it is time for the next flush
   */
  constructor(progress: Progress, flush: () => Promise<void>, later: (callback: () => void) => void) {
    this.#progress = progress;
    this.#flush = flush;
    this.#later = later;
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
    void this.#flush().finally(() => {
      // Again for what has failed, or came since.
      this.#later(() => {
        this.#isFlushing = false;
        this.moved();
      });
    });
  }
}
