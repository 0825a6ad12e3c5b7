import { MillraceError, messageOf } from '../core/errors.ts';
import type { FeedOptions } from './feed-options.ts';
import { backoff } from './retry.ts';

/** Milliseconds the start of the receiver waits for a sink that says neither yes nor no. */
const WAIT = 5000;

interface OpeningParts {
  readonly options: Pick<FeedOptions, 'name' | 'clock' | 'log' | 'retry' | 'patient'>;
  readonly open: (signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
  readonly onOpen: () => void;
  /** It is not open yet; it is tried again. */
  readonly onTrouble: (reason: string) => void;
}

/** Opens a sink, again and again if it must, until the signal aborts. */
export class Opening {
  readonly #parts: OpeningParts;
  #isStarting: boolean;
  #failures = 0;

  constructor(parts: OpeningParts) {
    this.#parts = parts;
    this.#isStarting = parts.options.patient !== true;
  }

  /**
   * Settles after the first try, or when that takes too long; the others continue in the background.
   * @throws MillraceError what waiting cannot mend, until it has settled; never when it is patient
   */
  async start(): Promise<void> {
    const overdue = Promise.withResolvers<void>();
    const { options, onTrouble } = this.#parts;
    const cancel = options.clock.after(WAIT, () => {
      onTrouble(`open has not answered within ${WAIT / 1000}s`);
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
    const { options, open, signal, onOpen, onTrouble } = this.#parts;
    const { name, clock, log, retry } = options;
    try {
      await open(signal);
    } catch (error) {
      if (error instanceof MillraceError && this.#isStarting) throw error;
      this.#failures += 1;
      const reason = messageOf(error);
      onTrouble(reason);
      const retryInMs = Math.round(backoff(this.#failures, retry));
      log.warn({ sink: name, error: reason, retryInMs }, 'sink did not open');
      clock.after(retryInMs, () => {
        if (!signal.aborted) void this.#try();
      });
      return;
    }
    onOpen();
  }
}
