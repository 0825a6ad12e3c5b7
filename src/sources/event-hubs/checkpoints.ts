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

/** How the partitions of a hub are read: which of them, from where, and where it is noted how far. */
export interface Checkpoints {
  /** For the client to be made with; null when it need not know. */
  readonly store: CheckpointStore | null;
  /** Under which name the client claims partitions. */
  readonly owner: string;
  /** Throws when the checkpoints cannot be read now. */
  probe?(client: EventHubConsumerClient): Promise<void>;
  subscribe(
    client: EventHubConsumerClient,
    handlers: Handlers,
    how: SubscribeOptions,
  ): Promise<readonly Subscription[]>;
  /** Notes, at once or soon, that everything of the partition up to and with this message has been taken. */
  save(last: ReceivedEventData, context: PartitionContext): Promise<void>;
  /** Notes what was to be noted soon, as far as that can be done. No `save` is running. */
  finish?(): Promise<void>;
}

export type Handlers = Pick<SubscriptionEventHandlers, 'processEvents' | 'processError'>;
