import type { Message, PubSub, Subscription } from '@google-cloud/pubsub';
import { messageOf } from '../../core/errors.ts';
import type { IncomingMessage } from '../../core/ingest.ts';
import type { Deliver, Source, SourceContext } from '../../core/source.ts';
import { orAborted, untilAborted, within } from '../../lib/abort.ts';
import { createPubSub } from '../../vendors/pubsub/connection.ts';
import { codeOf, PERMISSION_DENIED } from '../../vendors/pubsub/failure.ts';
import type { PubSubSourceOptions } from './config.ts';
import { encodingIn } from '../take.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSource(options: PubSubSourceOptions, _context: SourceContext): Source {
  return new PubSubSource(options);
}

/**
 * Reads a subscription, which remembers what was acknowledged. Messages that are held here and not acknowledged when reading
 * ends go back to the service. The SDK extends their deadlines, and connects again when the connection is lost.
 *
 * Modes: new → open (by `open`) → reading (by `run`) → closed. A batch that is not accepted, and an error that remains after
 * connecting again, end `run` with an error; then `open` has to be called again.
 */
export class PubSubSource implements Source {
  readonly #options: PubSubSourceOptions;
  #opened: PubSub | null = null;

  constructor(options: PubSubSourceOptions) {
    this.#options = options;
  }

  /** Checks that the subscription exists, if it has the right to: reading does not need that right. */
  async open(signal: AbortSignal): Promise<void> {
    await this.close(signal);
    const client = await createPubSub(this.#options);
    this.#opened = client;
    const { subscription, timeout } = this.#options;
    try {
      const metadata = client.subscription(subscription).getMetadata({ timeout, retry: null });
      await within(metadata, timeout, signal, new Error(`no answer in ${timeout} ms`));
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
      // Sends the last acknowledgements, and gives all other messages back.
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
      // Each stream may hold as much.
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

/** Most messages in a batch. */
const BATCH = 256;

/**
 * Delivers messages in batches, one at a time, in order of arrival. A message is acknowledged when its `deliver` has
 * resolved.
 *
 * Modes: idle ⇄ delivering (a batch is in flight) → ended (by `end`, or by a batch that was not accepted): nothing more is
 * delivered or acknowledged, so that nothing follows a message that was not accepted.
 */
class Reading {
  readonly #deliver: Deliver;
  readonly #failed = Promise.withResolvers<never>();
  /** Rejects with the first error; never resolves. */
  readonly failed = this.#failed.promise;
  #mode: 'idle' | 'delivering' | 'ended' = 'idle';
  readonly #waiting: Message[] = [];
  #delivering: Promise<void> = Promise.resolve();

  constructor(deliver: Deliver) {
    this.#deliver = deliver;
    this.failed.catch(() => undefined);
  }

  add(message: Message): void {
    if (this.#mode === 'ended') return;
    this.#waiting.push(message);
    if (this.#mode === 'delivering') return;
    this.#mode = 'delivering';
    this.#delivering = this.#deliverAll();
  }

  fail(error: unknown): void {
    this.#mode = 'ended';
    this.#failed.reject(error);
  }

  /** Resolves when the batch in flight, if any, is settled. */
  async end(): Promise<void> {
    this.#mode = 'ended';
    await this.#delivering;
  }

  async #deliverAll(): Promise<void> {
    try {
      while (this.#mode === 'delivering' && this.#waiting.length > 0) {
        const batch = this.#waiting.splice(0, BATCH);
        await this.#deliver(batch.map(toIncoming));
        for (const message of batch) message.ack();
      }
    } catch (error) {
      this.fail(error);
    }
    if (this.#mode === 'delivering') this.#mode = 'idle';
  }
}

/** The message as it is in the subscription: still compressed, with the attributes from its publisher. */
export function toIncoming({
  data,
  attributes,
  publishTime,
}: Pick<Message, 'data' | 'attributes'> & { readonly publishTime: Date }): IncomingMessage {
  return {
    body: data,
    encoding: encodingIn(attributes, 'blob-codec'),
    properties: { ...attributes },
    receivedAt: publishTime.getTime(),
  };
}
