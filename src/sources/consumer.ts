import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { SinkLog } from '../core/sink.ts';
import type { Deliver, Source } from '../core/source.ts';
import { unlessAborted } from '../lib/abort.ts';

export interface ConsumerOptions {
  readonly name: string;
  readonly source: Source;
  readonly deliver: Deliver;
  readonly clock: Clock;
  readonly log: SinkLog;
}

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;

/**
 * Reads one source, and opens it again after errors.
 *
 * Modes: reading (open, then run) ⇄ waiting (after an error, longer each time) → stopped. A source in trouble delays
 * nothing else.
 */
export class Consumer {
  readonly #options: ConsumerOptions;
  readonly #abort = new AbortController();
  #done: Promise<void> = Promise.resolve();

  constructor(options: ConsumerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#done = this.#read();
  }

  async stop(signal: AbortSignal): Promise<void> {
    this.#abort.abort();
    await this.#done;
    await this.#options.source.close(signal);
  }

  async #read(): Promise<void> {
    const { name, source, deliver, clock, log } = this.#options;
    const { signal } = this.#abort;
    for (let failures = 0; !signal.aborted;) {
      try {
        await source.open(signal);
        log.info({ source: name }, 'source open');
        failures = 0;
        await source.run(deliver, signal);
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        const retryInMs = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (failures - 1));
        log.warn({ source: name, error: messageOf(error), retryInMs }, 'source interrupted');
        const waited = new Promise<void>((resolve) => void clock.after(retryInMs, resolve));
        await unlessAborted(waited, signal, undefined);
      }
    }
  }
}
