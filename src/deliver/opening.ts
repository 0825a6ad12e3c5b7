import { MillraceError, messageOf } from '../core/errors.ts';
import type { FeedOptions } from './feed-options.ts';
import { backoff } from './retry.ts';

/** Milliseconds the start of the receiver waits for a sink that says neither yes nor no. */
const WAIT = 5000;

export interface OpeningEvents {
  readonly onOpen: () => void;
  /** It is not open yet; it is tried again. */
  readonly onTrouble: (reason: string) => void;
}

/** Opens a sink, again and again if it must, until the signal aborts. */
export class Opening {
  readonly #options: Pick<FeedOptions, 'name' | 'clock' | 'log' | 'retry' | 'patient'>;
  readonly #open: (signal: AbortSignal) => Promise<void>;
  readonly #signal: AbortSignal;
  readonly #events: OpeningEvents;
  #isStarting: boolean;
  #failures = 0;

  constructor(
    options: Pick<FeedOptions, 'name' | 'clock' | 'log' | 'retry' | 'patient'>,
    open: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
    events: OpeningEvents,
  ) {
    this.#options = options;
    this.#isStarting = options.patient !== true;
    this.#open = open;
    this.#signal = signal;
    this.#events = events;
  }

  /**
   * Settles after the first try, or when that takes too long; the others continue in the background.
   * @throws MillraceError what waiting cannot mend, until it has settled; never when it is patient
   */
  async start(): Promise<void> {
    const overdue = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(WAIT, () => {
      this.#events.onTrouble(`open has not answered within ${WAIT / 1000}s`);
      overdue.resolve();
    });
    try {
      await Promise.race([this.#try(), overdue.promise]);
    } finally {
      cancel();
      this.#isStarting = false;
    }
  }

  async #try(): Promise<void> {
    const { name, clock, log, retry } = this.#options;
    try {
      await this.#open(this.#signal);
    } catch (error) {
      if (error instanceof MillraceError && this.#isStarting) throw error;
      this.#failures += 1;
      const reason = messageOf(error);
      this.#events.onTrouble(reason);
      const retryInMs = Math.round(backoff(this.#failures, retry));
      log.warn({ sink: name, error: reason, retryInMs }, 'sink did not open');
      clock.after(retryInMs, () => {
        if (!this.#signal.aborted) void this.#try();
      });
      return;
    }
    this.#events.onOpen();
  }
}
