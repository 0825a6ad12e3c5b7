import { setTimeout as wait } from 'node:timers/promises';
import PQueue from 'p-queue';
import { messageOf } from '../core/errors.ts';
import type { EtlMessage } from './etl.ts';

/** The target will never take the message: it is let go. Every other error is tried again. */
export class Refused extends Error {}

/** Puts messages of one target and one key into a broker: all of them, or it throws. */
export type Send = (messages: readonly EtlMessage[], signal: AbortSignal) => Promise<void>;

export interface OutboxOptions {
  readonly send: Send;
  /** The first failure after a success, of one line; repetitions are not told. */
  readonly onTrouble: (target: string, reason: string) => void;
  readonly onRefused: (target: string, reason: string) => void;
}

/** Messages handed to `send` in one go, and calls in flight at once. */
const TOGETHER = 100;
const AT_ONCE = 32;
/** Milliseconds by the wall, as the brokers are real: they double from one failure to the next. */
const PAUSE = { first: 100, longest: 10_000 };

/**
 * Messages on their way to one destination, in memory: at least once, and in order within a target and a key. What is
 * refused is let go; everything else is sent again until it arrives or the outbox is closed.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  /** What waits, by target and key. */
  readonly #lines = new Map<string, EtlMessage[]>();
  readonly #queue = new PQueue({ concurrency: AT_ONCE });
  readonly #working = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #left = 0;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  put(message: EtlMessage): void {
    if (this.#stopping.signal.aborted) return;
    const name = JSON.stringify([message.target, message.key]);
    const line = this.#lines.get(name);
    if (line !== undefined) {
      line.push(message);
      return;
    }
    const started = [message];
    this.#lines.set(name, started);
    const work = this.#work(name, message.target, started).finally(() => this.#working.delete(work));
    this.#working.add(work);
  }

  /** Waits up to so many milliseconds for what is on the way. @returns messages that were given up */
  async close(patience: number): Promise<number> {
    const over = new AbortController();
    const deadline = wait(patience, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([this.#idle(), deadline]);
    over.abort();
    this.#stopping.abort();
    await this.#idle();
    return this.#left;
  }

  async #idle(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working);
  }

  async #work(name: string, target: string, line: EtlMessage[]): Promise<void> {
    const { signal } = this.#stopping;
    let together = TOGETHER;
    let pause = 0;
    while (line.length > 0 && !signal.aborted) {
      const some = line.slice(0, together);
      try {
        await this.#queue.add(() => this.#options.send(some, signal));
        line.splice(0, some.length);
        [together, pause] = [TOGETHER, 0];
      } catch (error) {
        if (signal.aborted) break;
        if (error instanceof Refused) {
          // Of several nobody knows which is to blame.
          if (some.length > 1) together = 1;
          else {
            line.shift();
            this.#options.onRefused(target, error.message);
          }
          continue;
        }
        if (pause === 0) this.#options.onTrouble(target, messageOf(error));
        pause = Math.min(PAUSE.longest, pause === 0 ? PAUSE.first : pause * 2);
        await wait(pause, undefined, { signal }).catch(() => undefined);
      }
    }
    // In the same turn that found it empty: whoever puts later starts a line of its own.
    this.#lines.delete(name);
    this.#left += line.length;
  }
}
