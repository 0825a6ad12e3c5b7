import type { Message, PubSub, Subscription } from '@google-cloud/pubsub';
import { messageOf } from '../../core/errors.ts';
import type { Deliver, Source, SourceContext } from '../../core/source.ts';
import { orAborted, untilAborted, within } from '../../lib/abort.ts';
import { createPubSub } from '../../sinks/pubsub/connection.ts';
import { codeOf, PERMISSION_DENIED } from '../../sinks/pubsub/failure.ts';
import type { PubSubSourceOptions } from './config.ts';
import { Reading } from './reading.ts';

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
