import type { EventHubConsumerClient, ReceivedEventData, Subscription } from '@azure/event-hubs';
import type { IncomingMessage, Source, SourceContext } from '../../core/source.ts';
import { orAborted, untilAborted } from '../../lib/abort.ts';
import { hostOf, loadCredential } from '../../sinks/event-hubs/connection.ts';
import { explain, toFailure } from '../../sinks/event-hubs/failure.ts';
import type { EventHubsSourceOptions } from './config.ts';
import { toIncoming } from './message.ts';

/** Messages of one partition that are handed on together, at the most. */
const BATCH = 256;
/** Seconds after which the SDK looks whether the connection is still there while nothing comes. */
const LOOK = 1;
/** The offset before the first message. */
const BEGINNING = '-1';

type Deliver = (batch: readonly IncomingMessage[]) => Promise<void>;

interface Opened {
  readonly client: EventHubConsumerClient;
  readonly partitions: readonly string[];
}

/**
 * Reads all partitions of a hub, each in its order, and remembers for each the offset of the last message that was
 * taken.
 *
 * Modes: new → open (by `open`: connected, partitions known) → reading (by `run`) → closed. Whatever goes wrong while
 * reading ends `run` with an error, after what was handed on has been settled; `open` then begins anew behind the
 * checkpoints. The SDK would go on behind a message that was not taken: that is why nothing is left to its own retrying.
 */
export class EventHubsSource implements Source {
  readonly #options: EventHubsSourceOptions;
  readonly #context: SourceContext;
  #opened: Opened | null = null;

  constructor(options: EventHubsSourceOptions, context: SourceContext) {
    this.#options = options;
    this.#context = context;
  }

  async open(signal: AbortSignal): Promise<void> {
    await this.#letGo(signal);
    const client = await this.#createClient();
    try {
      this.#opened = { client, partitions: await client.getPartitionIds({ abortSignal: signal }) };
    } catch (error) {
      void client.close().catch(() => undefined);
      throw this.#explained(error);
    }
  }

  async run(deliver: Deliver, signal: AbortSignal): Promise<void> {
    if (this.#opened === null) throw new Error('the source is not open');
    const { client, partitions } = this.#opened;
    const failed = Promise.withResolvers<never>();
    const taking = new Set<Promise<void>>();
    const subscriptions: Subscription[] = [];
    let ended = false;
    // At once, so that nothing follows a message that was not taken.
    const fail = (error: unknown): void => {
      ended = true;
      failed.reject(error);
    };
    const handlers = {
      // The SDK waits for it before it asks for more of the partition.
      processEvents: async (
        events: readonly ReceivedEventData[],
        { partitionId }: { partitionId: string },
      ) => {
        if (ended || events.length === 0) return;
        const taken = this.#take(events, partitionId, deliver);
        taking.add(taken);
        await taken.catch(fail).finally(() => taking.delete(taken));
      },
      processError: async (error: Error) => fail(this.#explained(error)),
    };
    failed.promise.catch(() => undefined);
    try {
      const starts = await Promise.all(partitions.map((id) => this.#startOf(id)));
      for (const [index, id] of partitions.entries()) {
        const startPosition = { offset: starts[index] ?? BEGINNING };
        const how = {
          startPosition,
          maxBatchSize: BATCH,
          maxWaitTimeInSeconds: LOOK,
          skipParsingBodyAsJson: true,
        };
        subscriptions.push(client.subscribe(id, handlers, how));
      }
      await Promise.race([failed.promise, untilAborted(signal)]);
    } finally {
      ended = true;
      const closed = Promise.allSettled(subscriptions.map((subscription) => subscription.close()));
      await orAborted(closed, AbortSignal.timeout(this.#options.timeout));
      await Promise.allSettled(taking);
    }
  }

  async close(signal: AbortSignal): Promise<void> {
    await this.#letGo(signal);
  }

  async #take(events: readonly ReceivedEventData[], partition: string, deliver: Deliver): Promise<void> {
    const now = this.#context.clock.now();
    await deliver(events.map((event) => toIncoming(event, now)));
    const last = events.at(-1);
    if (last !== undefined) await this.#context.checkpoints.save(this.#keyOf(partition), last.offset);
  }

  /** The offset to read behind. A `latest` is looked up and kept, or a restart would skip what has come meanwhile. */
  async #startOf(partition: string): Promise<string> {
    const key = this.#keyOf(partition);
    const saved = await this.#context.checkpoints.load(key);
    if (saved !== null) return saved;
    if (this.#options.start === 'earliest') return BEGINNING;
    const found = await this.#opened?.client.getPartitionProperties(partition).catch((error: unknown) => {
      throw this.#explained(error);
    });
    const offset = found?.lastEnqueuedOffset || BEGINNING;
    await this.#context.checkpoints.save(key, offset);
    return offset;
  }

  /** Offsets mean something in one hub of one namespace only, and each consumer group reads for itself. */
  #keyOf(partition: string): string {
    const { connection, hub, consumerGroup } = this.#options;
    return [this.#context.name, hostOf(connection), hub, consumerGroup, partition].join('/');
  }

  #explained(error: unknown): Error {
    return new Error(explain(this.#options.hub, toFailure(error)), { cause: error });
  }

  async #createClient(): Promise<EventHubConsumerClient> {
    const { connection, hub, consumerGroup, timeout } = this.#options;
    const { EventHubConsumerClient: Client } = await import('@azure/event-hubs');
    const options = { retryOptions: { maxRetries: 0, timeoutInMs: timeout } };
    if (connection.by === 'key') return new Client(consumerGroup, connection.connectionString, hub, options);
    const credential = await loadCredential(connection.clientId);
    return new Client(consumerGroup, connection.namespace, hub, credential, options);
  }

  async #letGo(signal: AbortSignal): Promise<void> {
    const opened = this.#opened;
    this.#opened = null;
    if (opened !== null)
      await orAborted(
        opened.client.close().catch(() => undefined),
        signal,
      );
  }
}
