import type { InFlightWindow } from './in-flight-window.ts';

/** Those who wait until a feed has settled all up to some seq. */
export class Waiters {
  readonly #flush: () => Promise<void>;
  readonly #later: (callback: () => void) => void;
  #waiters: { readonly seq: number; readonly resolve: () => void }[] = [];
  #flushing = false;

  /**
   * @param flush lets the sink confirm what it holds, which it would otherwise do when it suits it
   * @param later calls back when it is time to try that again
   */
  constructor(flush: () => Promise<void>, later: (callback: () => void) => void) {
    this.#flush = flush;
    this.#later = later;
  }

  /** Resolves when everything up to and including this seq is settled; `moved` tells of it. */
  passed(seq: number, window: InFlightWindow): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ seq, resolve });
    this.moved(window);
    return promise;
  }

  /** To be called whenever something may have been settled, or sent. */
  moved(window: InFlightWindow): void {
    if (this.#waiters.length === 0) return;
    const { cursor } = window;
    for (const { seq, resolve } of this.#waiters) if (seq <= cursor) resolve();
    this.#waiters = this.#waiters.filter(({ seq }) => seq > cursor);
    if (this.#flushing || !this.#waiters.some(({ seq }) => window.isSent(seq))) return;
    this.#flushing = true;
    void this.#flush().finally(() => {
      // What failed, or came meanwhile, is asked for once more.
      this.#later(() => {
        this.#flushing = false;
        this.moved(window);
      });
    });
  }
}
