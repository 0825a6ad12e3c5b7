import type { EventHubConsumerClient, Subscription } from '@azure/event-hubs';
import { randomUUID } from 'node:crypto';
import type { SourceContext } from '../../core/source.ts';
import { hostOf } from '../../vendors/event-hubs/connection.ts';
import type { EventHubsSourceOptions } from './config.ts';
import { BEGINNING, type Checkpoints } from './checkpoints.ts';

/** Reads all partitions, and keeps the offset of the last accepted message of each in the journal. */
export class JournalCheckpoints implements Checkpoints {
  readonly store = null;
  readonly owner = randomUUID();
  readonly #options: EventHubsSourceOptions;
  readonly #context: SourceContext;

  constructor(options: EventHubsSourceOptions, context: SourceContext) {
    this.#options = options;
    this.#context = context;
  }

  async subscribe(
    ...[client, handlers, how]: Parameters<Checkpoints['subscribe']>
  ): Promise<readonly Subscription[]> {
    const partitions = await client.getPartitionIds();
    const starts = await Promise.all(partitions.map((id) => this.#startOf(client, id)));
    return partitions.map((id, index) =>
      client.subscribe(id, handlers, { ...how, startPosition: { offset: starts[index] ?? BEGINNING } }),
    );
  }

  save(...[{ offset }, { partitionId }]: Parameters<Checkpoints['save']>): Promise<void> {
    return this.#context.checkpoints.save(this.#keyOf(partitionId), offset);
  }

  /** The offset to read behind. `latest` is saved as an offset: a restart would skip the messages since. */
  async #startOf(client: EventHubConsumerClient, partition: string): Promise<string> {
    const key = this.#keyOf(partition);
    const saved = await this.#context.checkpoints.load(key);
    if (saved !== null) return saved;
    if (this.#options.start === 'earliest') return BEGINNING;
    const { lastEnqueuedOffset } = await client.getPartitionProperties(partition);
    const offset = lastEnqueuedOffset || BEGINNING;
    await this.#context.checkpoints.save(key, offset);
    return offset;
  }

  /** Offsets belong to one hub of one namespace, and each consumer group reads for itself. */
  #keyOf(partition: string): string {
    const { connection, hub, consumerGroup } = this.#options;
    return [this.#context.name, hostOf(connection), hub, consumerGroup, partition].join('/');
  }
}
