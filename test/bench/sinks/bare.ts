import { EventHubProducerClient } from '@azure/event-hubs';
import { v1, PubSub } from '@google-cloud/pubsub';
import type { JournalEvent } from '../../../src/core/event.ts';
import { partitionKeyOf, toMessage } from '../../../src/vendors/event-hubs/message.ts';
import { toMessages } from '../../../src/vendors/message.ts';
import { toMessage as toPubSub } from '../../../src/sinks/pubsub/message.ts';

/** Events of one batch, as many as the sinks take at once. */
const BATCH = 500;
/** Sends in flight at once, as the sinks have. */
const EVENT_HUBS_LANES = 128;
const PUBSUB_LANES = 8;

/** As fast as the SDK sends the same batches: groups of one partition key, nothing checked but the sizes. */
export async function bareEventHubs(
  client: EventHubProducerClient,
  events: readonly JournalEvent[],
): Promise<void> {
  const groups = batches(events)
    .flatMap((batch) => [...Map.groupBy(batch, partitionKeyOf).values()])
    .values();
  await inLanes(EVENT_HUBS_LANES, groups, async (group) => {
    const batch = await client.createBatch({ partitionKey: group[0]?.user ?? '' });
    for (const event of group) batch.tryAdd(toMessage(event, event.body, false));
    await client.sendBatch(batch);
  });
}

/** The same messages for Pub/Sub, by the SDK's own publish call. */
export async function barePubSub(
  client: v1.PublisherClient,
  project: string,
  events: readonly JournalEvent[],
): Promise<void> {
  const asDeliveries = events.map((event) => ({ event, destination: null }));
  await inLanes(PUBSUB_LANES, batches(asDeliveries).values(), async (batch) => {
    const messages = await toMessages(batch, 'never', (event, body) => toPubSub(event, body, false, false));
    await client.publish({ topic: `projects/${project}/topics/events`, messages });
  });
}

export function publisher(endpoint: string, project: string): v1.PublisherClient {
  const { options } = new PubSub({
    projectId: project,
    apiEndpoint: endpoint,
    emulatorMode: true,
    clientOptions: { universeDomain: 'googleapis.com' },
  });
  return new v1.PublisherClient({ ...options });
}

async function inLanes<T>(
  lanes: number,
  items: IterableIterator<T>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const lane = async (): Promise<void> => {
    for (const item of items) await work(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

function batches<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / BATCH) }, (_, at) =>
    items.slice(at * BATCH, (at + 1) * BATCH),
  );
}
