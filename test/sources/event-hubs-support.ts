import {
  EventHubProducerClient,
  type Checkpoint,
  type CheckpointStore as SharedStore,
  type PartitionOwnership,
} from '@azure/event-hubs';
import type { CheckpointStore } from '../../src/core/source.ts';
import type { JournalEvent } from '../../src/core/event.ts';
import { toMessage } from '../../src/vendors/event-hubs/message.ts';
import { messageOf } from '../sinks/support.ts';
import type { AmqpPeer } from '../support/amqp-peer/peer.ts';

/** Sends events to the hub `events`. */
export async function publish(peer: AmqpPeer, batch: readonly JournalEvent[]): Promise<void> {
  const client = new EventHubProducerClient(peer.connectionString, 'events');
  for (const event of batch)
    await client.sendBatch([await messageOf(event, 'auto', toMessage)], { partitionKey: event.user ?? '' });
  await client.close();
}

/** For sources that must not use the journal's. */
export const NO_CHECKPOINTS: CheckpointStore = {
  load: (key) => Promise.reject(new Error(`asked the journal for ${key}`)),
  save: (key) => Promise.reject(new Error(`gave the journal ${key}`)),
};

/** The hub of all that a `MemoryStore` holds. */
export const PLACE = { fullyQualifiedNamespace: 'host', eventHubName: 'events', consumerGroup: '$Default' };

/** Claims and checkpoints in memory, as another worker may have left them. */
export class MemoryStore implements SharedStore {
  readonly owners = new Map<string, string>();
  readonly checkpoints = new Map<string, Checkpoint>();

  listOwnership(): Promise<PartitionOwnership[]> {
    return Promise.resolve(
      Array.from(this.owners, ([partitionId, ownerId]) => ({ ...PLACE, partitionId, ownerId })),
    );
  }

  claimOwnership(wanted: PartitionOwnership[]): Promise<PartitionOwnership[]> {
    for (const { partitionId, ownerId } of wanted) this.owners.set(partitionId, ownerId);
    return Promise.resolve(wanted);
  }

  updateCheckpoint(checkpoint: Checkpoint): Promise<void> {
    this.checkpoints.set(checkpoint.partitionId, checkpoint);
    return Promise.resolve();
  }

  listCheckpoints(): Promise<Checkpoint[]> {
    return Promise.resolve([...this.checkpoints.values()]);
  }
}
