import type { Message } from '@google-cloud/pubsub';
import type { Deliver } from '../../core/source.ts';
import { toIncoming } from './message.ts';

/** Messages that are handed on together, at most. */
const BATCH = 256;

/**
 * Hands messages on, one batch at a time in order of arrival; the next gathers meanwhile. A message is acknowledged once
 * the `deliver` that took it has resolved.
 *
 * Modes: idle ⇄ taking (a batch is on its way) → ended (by `end`, or by a batch that was not taken): nothing more is
 * handed on or acknowledged, so that nothing follows a message that was not taken.
 */
export class Reading {
  readonly #deliver: Deliver;
  readonly #failed = Promise.withResolvers<never>();
  #mode: 'idle' | 'taking' | 'ended' = 'idle';
  #waiting: Message[] = [];
  #taking: Promise<void> = Promise.resolve();

  constructor(deliver: Deliver) {
    this.#deliver = deliver;
    this.#failed.promise.catch(() => undefined);
  }

  /** Rejects with the first error; never resolves. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  add(message: Message): void {
    if (this.#mode === 'ended') return;
    this.#waiting.push(message);
    if (this.#mode === 'taking') return;
    this.#mode = 'taking';
    this.#taking = this.#take();
  }

  fail(error: unknown): void {
    this.#mode = 'ended';
    this.#failed.reject(error);
  }

  /** Resolves once the batch that is on its way, if any, is settled. */
  async end(): Promise<void> {
    this.#mode = 'ended';
    await this.#taking;
  }

  async #take(): Promise<void> {
    try {
      while (this.#mode === 'taking' && this.#waiting.length > 0) {
        const batch = this.#waiting.slice(0, BATCH);
        this.#waiting = this.#waiting.slice(BATCH);
        await this.#deliver(batch.map(toIncoming));
        for (const message of batch) message.ack();
      }
    } catch (error) {
      this.fail(error);
    }
    if (this.#mode === 'taking') this.#mode = 'idle';
  }
}
