import type { Message, PubSub, Subscription } from '@google-cloud/pubsub';
import { messageOf } from '../../core/errors.ts';
import type { Deliver, Source, SourceContext } from '../../core/source.ts';
import { orAborted, untilAborted, within } from '../../lib/abort.ts';
import { createPubSub } from '../../vendors/pubsub/connection.ts';
import { codeOf, PERMISSION_DENIED } from '../../vendors/pubsub/failure.ts';
import type { PubSubSourceOptions } from './config.ts';
import { toIncoming } from './message.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSource(options: PubSubSourceOptions, _context: SourceContext): Source {
  return new PubSubSource(options);
}

/**
 * Reads a subscription. The subscription itself remembers what has been taken, by the acknowledgements; whatever is held
 * here and not acknowledged when reading ends is given back. The SDK keeps the deadlines of what is held from lapsing,
 * and connects again by itself when the connection is lost.
 *
 * Modes: new → open (by `open`) → reading (by `run`) → closed. A batch that is not taken, and an error that connecting
 * again cannot mend, end `run` with an error; `open` then begins anew.
 */
export class PubSubSource implements Source {
  readonly #options: PubSubSourceOptions;
  #opened: PubSub | null = null;

  constructor(options: PubSubSourceOptions) {
    this.#options = options;
  }

  /** Looks whether the subscription exists. The right to look is not needed for reading, so it may be lacking. */
  async open(signal: AbortSignal): Promise<void> {
    await this.close(signal);
    const client = await createPubSub(this.#options);
    this.#opened = client;
    const { subscription, timeout } = this.#options;
    try {
      const look = client.subscription(subscription).getMetadata({ timeout, retry: null });
      await within(look, timeout, signal, new Error(`no answer in ${timeout} ms`));
    } catch (error) {
      if (codeOf(error) !== PERMISSION_DENIED) throw this.#explained(error);
    }
  }

  async run(deliver: Deliver, signal: AbortSignal): Promise<void> {
    if (this.#opened === null) throw new Error('the source is not open');
    const subscription = await this.#subscribe(this.#opened);
    const reading = new Reading(deliver);
    subscription.on('error', (error: unknown) => reading.fail(this.#explained(error)));
    subscription.on('message', (message: Message) => reading.add(message));
    try {
      await Promise.race([reading.failed, untilAborted(signal)]);
    } finally {
      await reading.end();
      // Sends the acknowledgements that are still here, and gives everything else back.
      const closed = subscription.close().catch(() => undefined);
      await orAborted(closed, AbortSignal.timeout(this.#options.timeout));
    }
  }

  async close(signal: AbortSignal): Promise<void> {
    const closed = this.#opened?.close().catch(() => undefined);
    this.#opened = null;
    if (closed !== undefined) await orAborted(closed, signal);
  }

  async #subscribe(client: PubSub): Promise<Subscription> {
    const { Duration, SubscriptionCloseBehaviors } = await import('@google-cloud/pubsub');
    const { held, subscription, timeout } = this.#options;
    return client.subscription(subscription, {
      flowControl: { maxMessages: held.messages, maxBytes: held.bytes, allowExcessMessages: false },
      // Each further stream would be allowed to hold as much again.
      streamingOptions: { maxStreams: 1 },
      closeOptions: {
        behavior: SubscriptionCloseBehaviors.NackImmediately,
        timeout: Duration.from({ milliseconds: timeout }),
      },
    });
  }

  #explained(error: unknown): Error {
    const { subscription } = this.#options;
    return new Error(`subscription ${subscription}: ${messageOf(error)}`, { cause: error });
  }
}

/** Messages that are handed on together, at most. */
const BATCH = 256;

/**
 * Hands messages on, one batch at a time in order of arrival; the next gathers meanwhile. A message is acknowledged once
 * the `deliver` that took it has resolved.
 *
 * Modes: idle ⇄ taking (a batch is on its way) → ended (by `end`, or by a batch that was not taken): nothing more is
 * handed on or acknowledged, so that nothing follows a message that was not taken.
 */
class Reading {
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
