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

interface Waiting {
  readonly message: EtlMessage;
  readonly done: () => void;
  readonly refuse: (reason: Error) => void;
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
  readonly #lines = new Map<string, Waiting[]>();
  readonly #queue = new PQueue({ concurrency: AT_ONCE });
  readonly #working = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #left = 0;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Resolves when the message has arrived; rejects with Refused. It does neither once the outbox is closed. */
  put(message: EtlMessage): Promise<void> {
    const { promise, resolve: done, reject: refuse } = Promise.withResolvers<void>();
    if (!this.#stopping.signal.aborted) this.#add({ message, done, refuse });
    return promise;
  }

  #add(waiting: Waiting): void {
    const { message } = waiting;
    const name = JSON.stringify([message.target, message.key]);
    const line = this.#lines.get(name);
    if (line !== undefined) {
      line.push(waiting);
      return;
    }
    const started = [waiting];
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

  async #work(name: string, target: string, line: Waiting[]): Promise<void> {
    const { signal } = this.#stopping;
    let together = TOGETHER;
    let pause = 0;
    while (line.length > 0 && !signal.aborted) {
      const some = line.slice(0, together);
      try {
        const messages = some.map(({ message }) => message);
        await this.#queue.add(() => this.#options.send(messages, signal));
        line.splice(0, some.length);
        for (const { done } of some) done();
        [together, pause] = [TOGETHER, 0];
      } catch (error) {
        if (signal.aborted) break;
        if (error instanceof Refused) {
          // Of several nobody knows which is to blame.
          if (some.length > 1) together = 1;
          else {
            line.shift()?.refuse(error);
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
