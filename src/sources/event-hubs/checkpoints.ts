import type {
  CheckpointStore,
  EventHubConsumerClient,
  PartitionContext,
  ReceivedEventData,
  SubscribeOptions,
  Subscription,
  SubscriptionEventHandlers,
} from '@azure/event-hubs';

/** The offset before the first message. */
export const BEGINNING = '-1';

/** Which partitions of a hub are read, and where their checkpoints are kept. */
export interface Checkpoints {
  /** For the client; null when it has no store. */
  readonly store: CheckpointStore | null;
  /** The name under which the client claims partitions. */
  readonly owner: string;
  /** Throws when the checkpoints cannot be read now. */
  probe?(client: EventHubConsumerClient): Promise<void>;
  subscribe(
    client: EventHubConsumerClient,
    handlers: Handlers,
    how: SubscribeOptions,
  ): Promise<readonly Subscription[]>;
  /** Writes a checkpoint, at once or soon: everything in the partition up to and with this message was accepted. */
  save(last: ReceivedEventData, context: PartitionContext): Promise<void>;
  /** Writes the checkpoints that were to be written soon. Called when no `save` is running. */
  finish?(): Promise<void>;
}

export type Handlers = Pick<SubscriptionEventHandlers, 'processEvents' | 'processError'>;
