import { setTimeout as wait } from 'node:timers/promises';
import PQueue from 'p-queue';
import { messageOf } from '../core/errors.ts';
import type { EtlMessage } from './etl.ts';

/** The target refuses the message permanently. Every other error is retried. */
export class Refused extends Error {}

/** Sends messages of one target and key to a broker: all of them, or it throws. */
export type Send = (messages: readonly EtlMessage[], signal: AbortSignal) => Promise<void>;

export interface OutboxOptions {
  readonly send: Send;
  /** Called for the first failure after a success. */
  readonly onTrouble: (target: string, reason: string) => void;
  readonly onRefused: (target: string, reason: string) => void;
}

/** Most messages of one call of `send`, and most calls at once. */
const TOGETHER = 100;
const AT_ONCE = 32;
/** Milliseconds of real time, as the brokers are real; doubled after each failure. */
const PAUSE = { first: 100, longest: 10_000 };

/**
 * Sends messages to one destination, at least once, in order within a target and a key. A refused message is dropped;
 * others are retried until the outbox is closed.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  /** Waiting messages by target and key. */
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

  /** Waits for the messages, up to `patience` milliseconds. @returns the number of dropped messages */
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
          // One by one, to find the refused message.
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
    // In the same turn that found it empty: a later message starts a new line.
    this.#lines.delete(name);
    this.#left += line.length;
  }
}
