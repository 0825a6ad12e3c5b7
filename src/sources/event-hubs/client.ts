import type { EventHubConsumerClient } from '@azure/event-hubs';
import { loadCredential } from '../../vendors/event-hubs/connection.ts';
import type { EventHubsSourceOptions } from './config.ts';
import type { Checkpoints } from './checkpoints.ts';

/** A claim is renewed so often before it lapses. */
const RENEWALS = 6;

/** A client of one hub and consumer group, not yet connected. */
export async function createClient(
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
    // Its whole share at one look; one partition a look would leave a large hub unread for minutes after a start.
    strategy: 'greedy' as const,
    updateIntervalInMs: takeOverAfter / RENEWALS,
    partitionOwnershipExpirationIntervalInMs: takeOverAfter,
  };
}
