import type { EventHubConsumerClient, PartitionContext, ReceivedEventData } from '@azure/event-hubs';
import type { IncomingMessage } from '../../core/ingest.ts';
import type { Deliver, Source, SourceContext } from '../../core/source.ts';
import { orAborted, untilAborted } from '../../lib/abort.ts';
import { loadCredential } from '../../vendors/event-hubs/connection.ts';
import { toFailure } from '../../vendors/event-hubs/failure.ts';
import { openBlobStore } from './blob-store.ts';
import type { EventHubsSourceOptions } from './config.ts';
import { JournalCheckpoints } from './journal-checkpoints.ts';
import type { Checkpoints } from './checkpoints.ts';
import { SharedCheckpoints } from './shared-checkpoints.ts';
import { encodingIn } from '../take.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSource(options: EventHubsSourceOptions, context: SourceContext): Source {
  return new EventHubsSource(options, context);
}

/** Most messages in a batch, which is of one partition. */
const BATCH = 256;
/** Seconds without a message after which the SDK checks the connection. */
const CHECK_AFTER = 1;
const HOW = { maxBatchSize: BATCH, maxWaitTimeInSeconds: CHECK_AFTER, skipParsingBodyAsJson: true };

/**
 * Reads the partitions of a hub, each in its order, and remembers the last accepted message of each: all partitions with
 * checkpoints in the journal, or its share of them with checkpoints that several workers can see.
 *
 * Modes: new → open (by `open`: connected, checkpoints found) → reading (by `run`) → closed. An error while reading ends
 * `run`, after what was delivered is settled; after another `open`, reading continues behind the checkpoints. Retries of the
 * SDK are not used: it would continue behind a message that was not accepted.
 */
export class EventHubsSource implements Source {
  readonly #options: EventHubsSourceOptions;
  readonly #context: SourceContext;
  #opened: { readonly client: EventHubConsumerClient; readonly checkpoints: Checkpoints } | null = null;

  constructor(options: EventHubsSourceOptions, context: SourceContext) {
    this.#options = options;
    this.#context = context;
  }

  async open(signal: AbortSignal): Promise<void> {
    // A lost connection may never answer to a close.
    await this.close(AbortSignal.any([signal, AbortSignal.timeout(this.#options.timeout)]));
    const checkpoints = await this.#checkpointsOf();
    const client = await createClient(this.#options, checkpoints);
    try {
      await client.getPartitionIds({ abortSignal: signal });
      await checkpoints.probe?.(client);
    } catch (error) {
      void client.close().catch(() => undefined);
      throw this.#explained(error);
    }
    this.#opened = { client, checkpoints };
  }

  async run(deliver: Deliver, signal: AbortSignal): Promise<void> {
    if (this.#opened === null) throw new Error('the source is not open');
    const { client, checkpoints } = this.#opened;
    const failed = Promise.withResolvers<never>();
    const taking = new Set<Promise<void>>();
    let subscriptions: Awaited<ReturnType<Checkpoints['subscribe']>> = [];
    let ended = false;
    // At once, so that nothing follows a message that was not accepted.
    const fail = (error: unknown): void => {
      ended = true;
      failed.reject(error);
    };
    const take = async (events: readonly ReceivedEventData[], context: PartitionContext): Promise<void> => {
      const now = this.#context.clock.now();
      await deliver(events.map((event) => toIncoming(event, now)));
      const last = events.at(-1);
      if (last !== undefined) await checkpoints.save(last, context);
    };
    const handlers = {
      // The SDK waits for the result before it reads more of the partition.
      processEvents: async (events: readonly ReceivedEventData[], context: PartitionContext) => {
        if (ended || events.length === 0) return;
        const taken = take(events, context);
        taking.add(taken);
        await taken.catch(fail).finally(() => taking.delete(taken));
      },
      processError: async (error: Error) => fail(this.#explained(error)),
    };
    failed.promise.catch(() => undefined);
    try {
      subscriptions = await checkpoints.subscribe(client, handlers, HOW).catch((error: unknown) => {
        throw this.#explained(error);
      });
      await Promise.race([failed.promise, untilAborted(signal)]);
    } finally {
      ended = true;
      const deadline = AbortSignal.timeout(this.#options.timeout);
      // First, so that the last checkpoints are written before another worker takes over.
      await orAborted(
        Promise.allSettled(taking).then(() => checkpoints.finish?.()),
        deadline,
      );
      const closed = Promise.allSettled(subscriptions.map((subscription) => subscription.close()));
      await orAborted(closed, deadline);
      await Promise.allSettled(taking);
    }
  }

  async close(signal: AbortSignal): Promise<void> {
    const closed = this.#opened?.client.close().catch(() => undefined);
    this.#opened = null;
    if (closed !== undefined) await orAborted(closed, signal);
  }

  async #checkpointsOf(): Promise<Checkpoints> {
    const { checkpoints, timeout } = this.#options;
    if (checkpoints.type === 'journal') return new JournalCheckpoints(this.#options, this.#context);
    const store = await openBlobStore(checkpoints, timeout);
    return new SharedCheckpoints(this.#options, this.#context, store);
  }

  #explained(error: unknown): Error {
    return new Error(`event hub ${this.#options.hub}: ${toFailure(error).reason}`, { cause: error });
  }
}

/** How often a claim is renewed before it expires. */
const RENEWALS = 6;

/** A client of one hub and consumer group, not yet connected. */
async function createClient(
  { connection, hub, consumerGroup, timeout, checkpoints }: EventHubsSourceOptions,
  { store, owner }: Pick<Checkpoints, 'store' | 'owner'>,
): Promise<EventHubConsumerClient> {
  const { EventHubConsumerClient: Client } = await import('@azure/event-hubs');
  const options = {
    identifier: owner,
    retryOptions: { maxRetries: 0, timeoutInMs: timeout },
    ...(checkpoints.type === 'journal' ? {} : { loadBalancingOptions: balance(checkpoints.takeOverAfter) }),
  };
  if (connection.by === 'key') {
    const { connectionString } = connection;
    if (store === null) return new Client(consumerGroup, connectionString, hub, options);
    return new Client(consumerGroup, connectionString, hub, store, options);
  }
  const { address: namespace, clientId } = connection;
  const credential = await loadCredential(clientId);
  if (store === null) return new Client(consumerGroup, namespace, hub, credential, options);
  return new Client(consumerGroup, namespace, hub, credential, store, options);
}

/** @param takeOverAfter milliseconds */
function balance(takeOverAfter: number) {
  return {
    // Claims all of its share at once; one partition at a time would leave a large hub unread for minutes after a start.
    strategy: 'greedy' as const,
    updateIntervalInMs: takeOverAfter / RENEWALS,
    partitionOwnershipExpirationIntervalInMs: takeOverAfter,
  };
}

/** @param now milliseconds since the epoch, for a message without the time of its arrival in the hub */
function toIncoming({ body, properties, enqueuedTimeUtc }: ReceivedEventData, now: number): IncomingMessage {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(properties ?? {}))
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      texts[name] = String(value);
  return {
    body: bytesOf(body),
    encoding: encodingIn(texts, 'content-encoding'),
    properties: texts,
    receivedAt: enqueuedTimeUtc instanceof Date ? enqueuedTimeUtc.getTime() : now,
  };
}

/** The SDK has data sections as buffers. Any other body becomes its JSON. */
function bytesOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  if (body instanceof Uint8Array) return Buffer.from(body);
  if (Array.isArray(body) && body.every((part) => Buffer.isBuffer(part))) return Buffer.concat(body);
  return Buffer.from(typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));
}
