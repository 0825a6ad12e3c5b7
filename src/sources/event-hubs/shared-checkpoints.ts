import type {
  CheckpointStore,
  EventHubConsumerClient,
  PartitionContext,
  ReceivedEventData,
  Subscription,
} from '@azure/event-hubs';
import { randomUUID } from 'node:crypto';
import type { SourceContext } from '../../core/source.ts';
import { Claims } from './claims.ts';
import type { EventHubsSourceOptions } from './config.ts';
import { BEGINNING, type Checkpoints } from './checkpoints.ts';

/** Milliseconds between two checkpoints of a partition: each request costs money, and batches can be small. */
const SAVE_EVERY = 1000;
/** The SDK's code when another worker reads the partition now, and the hub's condition. */
const TAKEN_AWAY = 'ReceiverDisconnectedError';
const STOLEN = 'amqp:link:stolen';

/**
 * Shares the partitions among several workers. The SDK balances them: each worker claims its part in a store that all can
 * see, renews its claims, and takes over claims that were not renewed. The checkpoints are in that store too, up to a second
 * late: a worker that takes over a partition reads the messages since again.
 */
export class SharedCheckpoints implements Checkpoints {
  readonly owner = randomUUID();
  readonly store: Claims;
  readonly #options: EventHubsSourceOptions;
  readonly #context: SourceContext;
  /** Partitions that another worker took over while they were read: a checkpoint from here could set it back. */
  readonly #takenAway = new WeakSet<PartitionContext>();
  /** The last accepted message of each partition, until its checkpoint is written. */
  readonly #accepted = new Map<PartitionContext, ReceivedEventData>();
  readonly #savedAt = new WeakMap<PartitionContext, number>();
  #client: EventHubConsumerClient | null = null;

  constructor(options: EventHubsSourceOptions, context: SourceContext, store: CheckpointStore) {
    this.#options = options;
    this.#context = context;
    const latest = options.start === 'latest';
    this.store = new Claims({ store, owner: this.owner, firstOf: latest ? (id) => this.#endOf(id) : null });
  }

  async probe(client: EventHubConsumerClient): Promise<void> {
    this.#client = client;
    const { fullyQualifiedNamespace: host, eventHubName: hub } = client;
    await this.store.listOwnership(host, hub, this.#options.consumerGroup);
  }

  subscribe(
    ...[client, { processEvents, processError }, how]: Parameters<Checkpoints['subscribe']>
  ): Promise<readonly Subscription[]> {
    const subscription = client.subscribe(
      {
        processEvents: async (events, context) => {
          // Only an error makes the SDK stop reading a single partition.
          if (this.store.belongsToAnother(context.partitionId))
            throw Object.assign(new Error('another worker reads the partition'), { code: TAKEN_AWAY });
          if (events.length === 0) await this.#write(context);
          else await processEvents(events, context);
        },
        processError: async (error, context) => {
          // During a close the SDK reports this as an error, and then nothing else.
          if ('condition' in error && error.condition === STOLEN) this.#left(context, 'OwnershipLost');
          else if (!('code' in error && error.code === TAKEN_AWAY)) await processError(error, context);
        },
        processInitialize: async ({ partitionId: partition }) =>
          this.#context.log.info({ source: this.#context.name, partition }, 'partition taken'),
        processClose: async (reason, context) => this.#left(context, reason),
      },
      { ...how, startPosition: { offset: BEGINNING } },
    );
    return Promise.resolve([subscription]);
  }

  async save(last: ReceivedEventData, context: PartitionContext): Promise<void> {
    if (this.#takenAway.has(context)) return;
    this.#accepted.set(context, last);
    const savedAt = this.#savedAt.get(context) ?? Number.NEGATIVE_INFINITY;
    if (this.#context.clock.monotonic() - savedAt >= SAVE_EVERY) await this.#write(context);
  }

  async finish(): Promise<void> {
    await Promise.allSettled(Array.from(this.#accepted.keys(), (context) => this.#write(context)));
  }

  #left(context: PartitionContext, reason: string): void {
    const { name, log } = this.#context;
    const { partitionId: partition } = context;
    log.info({ source: name, partition, reason }, 'partition left');
    if (reason !== 'OwnershipLost') return;
    this.#takenAway.add(context);
    this.#accepted.delete(context);
    this.store.leave(partition);
  }

  async #write(context: PartitionContext): Promise<void> {
    const last = this.#accepted.get(context);
    if (last === undefined || this.store.belongsToAnother(context.partitionId)) return;
    this.#accepted.delete(context);
    this.#savedAt.set(context, this.#context.clock.monotonic());
    await context.updateCheckpoint(last);
  }

  async #endOf(partition: string): Promise<{ offset: string; sequenceNumber: number }> {
    if (this.#client === null) throw new Error('the source is not open');
    const found = await this.#client.getPartitionProperties(partition);
    return {
      offset: found.lastEnqueuedOffset || BEGINNING,
      sequenceNumber: found.lastEnqueuedSequenceNumber,
    };
  }
}
