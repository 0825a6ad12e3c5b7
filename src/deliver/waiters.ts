import type { Progress } from './progress.ts';

interface Waiter {
  readonly seq: number;
  readonly until: 'sent' | 'settled';
  readonly resolve: () => void;
}

/** Those who wait until a feed has settled all up to some seq. */
export class Waiters {
  readonly #progress: Progress;
  readonly #flush: () => Promise<void>;
  readonly #later: (callback: () => void) => void;
  #waiters: Waiter[] = [];
  #flushing = false;

  /**
   * @param flush lets the sink confirm what it holds, which it would otherwise do when it suits it
   * @param later calls back when it is time to try that again
   */
  constructor(progress: Progress, flush: () => Promise<void>, later: (callback: () => void) => void) {
    this.#progress = progress;
    this.#flush = flush;
    this.#later = later;
  }

  /**
   * Resolves when the sink has everything up to and including this seq; `moved` tells of it.
   * @param until `settled`: what it holds is confirmed, too, and it is asked to
   */
  passed(seq: number, until: Waiter['until']): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ seq, until, resolve });
    this.moved();
    return promise;
  }

  /** To be called whenever something may have been settled, or sent. */
  moved(): void {
    if (this.#waiters.length === 0) return;
    const progress = this.#progress;
    const over = ({ seq, until }: Waiter): boolean =>
      until === 'settled' ? seq <= progress.cursor : progress.isSent(seq);
    for (const waiter of this.#waiters) if (over(waiter)) waiter.resolve();
    this.#waiters = this.#waiters.filter((waiter) => !over(waiter));
    if (this.#flushing || !this.#waiters.some(({ seq }) => progress.isSent(seq))) return;
    this.#flushing = true;
    void this.#flush().finally(() => {
      // What failed, or came meanwhile, is asked for once more.
      this.#later(() => {
        this.#flushing = false;
        this.moved();
      });
    });
  }
}
