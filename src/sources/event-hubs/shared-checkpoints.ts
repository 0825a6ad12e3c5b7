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

/** Milliseconds between two checkpoints of a partition: each is a request that is paid for, and batches can be small. */
const NOTE_EVERY = 1000;
/** What the SDK answers, and is told, when another worker reads the partition now; and how the hub says it. */
const TAKEN_AWAY = 'ReceiverDisconnectedError';
const STOLEN = 'amqp:link:stolen';

/**
 * Several workers share the partitions. The SDK balances them: each worker claims its part in a store that all can see,
 * renews its claims, and takes over what has not been renewed. How far each partition has been read lies there too, a
 * moment late: what was read since is read again by whoever takes the partition over.
 */
export class SharedCheckpoints implements Checkpoints {
  readonly owner = randomUUID();
  readonly store: Claims;
  readonly #options: EventHubsSourceOptions;
  readonly #context: SourceContext;
  /** Partitions another worker took away while they were read; what is noted of them would only set it back. */
  readonly #takenAway = new WeakSet<PartitionContext>();
  /** The last message taken of each partition, until it is noted. */
  readonly #taken = new Map<PartitionContext, ReceivedEventData>();
  readonly #notedAt = new WeakMap<PartitionContext, number>();
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
          // The one way to have the SDK end the reading of a single partition.
          if (this.store.belongsToAnother(context.partitionId)) throw takenAway();
          if (events.length === 0) await this.#note(context);
          else await processEvents(events, context);
        },
        processError: async (error, context) => {
          // Said while we let go of it: the SDK takes that for a failed close, and says no more.
          if (isStolen(error)) this.#left(context, 'OwnershipLost');
          else if (!isTakenAway(error)) await processError(error, context);
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
    this.#taken.set(context, last);
    const notedAt = this.#notedAt.get(context) ?? Number.NEGATIVE_INFINITY;
    if (this.#context.clock.monotonic() - notedAt >= NOTE_EVERY) await this.#note(context);
  }

  async finish(): Promise<void> {
    await Promise.allSettled(Array.from(this.#taken.keys(), (context) => this.#note(context)));
  }

  #left(context: PartitionContext, reason: string): void {
    const { name, log } = this.#context;
    const { partitionId: partition } = context;
    log.info({ source: name, partition, reason }, 'partition left');
    if (reason !== 'OwnershipLost') return;
    this.#takenAway.add(context);
    this.#taken.delete(context);
    this.store.leave(partition);
  }

  async #note(context: PartitionContext): Promise<void> {
    const last = this.#taken.get(context);
    if (last === undefined || this.store.belongsToAnother(context.partitionId)) return;
    this.#taken.delete(context);
    this.#notedAt.set(context, this.#context.clock.monotonic());
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

function takenAway(): Error {
  return Object.assign(new Error('another worker reads the partition'), { code: TAKEN_AWAY });
}

function isTakenAway(error: Error): boolean {
  return 'code' in error && error.code === TAKEN_AWAY;
}

function isStolen(error: Error): boolean {
  return 'condition' in error && error.condition === STOLEN;
}
