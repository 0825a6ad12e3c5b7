import { EventHubConsumerClient } from '@azure/event-hubs';
import { PubSub } from '@google-cloud/pubsub';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Pool } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent, MADE_UP_TEAM } from '../../src/sandbox/made-up-events.ts';
import { startAmqpPeer, type AmqpPeer } from '../support/amqp-peer/peer.ts';
import { Place } from '../support/place.ts';
import { lacksPubSubEmulator, startPubSubEmulator } from '../support/pubsub-emulator.ts';
import { startPubSubPeer } from '../support/pubsub-peer/peer.ts';
import { expectConserved, expectOnce } from '../support/read-back.ts';
import { runCount } from '../support/run-count.ts';
import { until } from '../support/until.ts';

const PROJECT = 'millrace-test';
const HUBS = ['events', 'labtest-events', 'wearable-events'];
const TOPICS = ['events', 'wearables'];
const ROUTES = [
  { match: ['labtest.', 'lab_report.'], to: ['hubs:labtest-events', 'archive'] },
  { match: ['daily.', 'historical.'], to: ['hubs:wearable-events', 'topics:wearables', 'archive'] },
  { match: '*', to: ['hubs', 'topics', 'archive'] },
];
const TYPES = [
  'daily.data.meal.created',
  'historical.data.meal.created',
  'labtest.order.updated',
  'lab_report.parsing_job.created',
  'provider.connection.created',
  'something.nobody.knows',
];

interface Received {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly key: string | null;
  readonly body: Buffer;
}
/** What arrived where, by `sink:destination`, then by idempotency key. */
type Arrivals = Map<string, Map<string, Received>>;

/** Reads with the vendors' own consumers, which know nothing of millrace. */
async function consume(
  peer: AmqpPeer,
  pubsub: PubSub,
  counts: ReadonlyMap<string, number>,
): Promise<Arrivals> {
  const arrivals: Arrivals = new Map();
  const take = (place: string, id: string, message: Received): void => {
    const here = arrivals.get(place) ?? new Map<string, Received>();
    arrivals.set(place, here.set(id, message));
  };
  const full = (): boolean =>
    [...counts].every(([place, count]) => (arrivals.get(place)?.size ?? 0) >= count);
  const clients = HUBS.map((hub) => new EventHubConsumerClient('$Default', peer.connectionString, hub));
  for (const [index, client] of clients.entries()) {
    client.subscribe(
      {
        processEvents: async (events) => {
          for (const { body, properties = {}, partitionKey } of events) {
            const bytes = Buffer.from(body as Uint8Array);
            take(`hubs:${HUBS[index]}`, String(properties['idempotency-key']), {
              metadata: properties,
              key: partitionKey ?? null,
              body: properties['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes,
            });
          }
        },
        processError: async () => undefined,
      },
      {
        startPosition: { offset: '-1' },
        skipParsingBodyAsJson: true,
        maxBatchSize: 500,
        maxWaitTimeInSeconds: 1,
      },
    );
  }
  for (const topic of TOPICS) {
    pubsub.subscription(`${topic}-sub`).on('message', (message) => {
      const { data, attributes, orderingKey } = message;
      take(`topics:${topic}`, attributes['idempotency-key'] ?? '', {
        metadata: attributes,
        key: orderingKey ?? null,
        body: attributes['blob-codec'] === 'gzip' ? gunzipSync(data) : data,
      });
      message.ack();
    });
  }
  try {
    await until('every message to be consumed', full).catch((error: unknown) => {
      const seen = Array.from(
        counts,
        ([place, count]) => `${place} ${arrivals.get(place)?.size ?? 0}/${count}`,
      );
      throw new Error(seen.join(', '), { cause: error });
    });
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    for (const topic of TOPICS) await pubsub.subscription(`${topic}-sub`).close();
  }
  return arrivals;
}

/** Google's emulator where it is installed, else a peer that speaks the same protocol. */
async function startPubSub(): Promise<{ endpoint: string; client: PubSub }> {
  const emulator = lacksPubSubEmulator() === null ? await startPubSubEmulator() : await startPubSubPeer();
  onTestFinished(() => emulator.stop());
  const client = new PubSub({
    projectId: PROJECT,
    apiEndpoint: emulator.endpoint,
    emulatorMode: true,
    // Without a domain of its own the library would look for credentials on the network.
    clientOptions: { universeDomain: 'googleapis.com' },
  });
  onTestFinished(() => client.close());
  for (const topic of TOPICS) {
    await client.createTopic(topic, { timeout: 120_000 });
    await client.createSubscription(topic, `${topic}-sub`, {
      enableMessageOrdering: true,
      gaxOpts: { timeout: 120_000 },
    });
  }
  return { endpoint: emulator.endpoint, client };
}

const EVENTS = runCount({ long: 10_000 });

test(`${EVENTS} events of 6 types are each exactly where \`millrace route\` says, with their metadata and their bytes`, async () => {
  const peer = await startAmqpPeer({ hubs: HUBS });
  onTestFinished(() => peer.stop());
  const { endpoint, client } = await startPubSub();
  const scene = await Place.make((folder) => ({
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      hubs: { type: 'event-hubs', connectionString: peer.connectionString, hub: 'events' },
      topics: { type: 'pubsub', project: PROJECT, topic: 'events', ordering: true, endpoint },
    },
    routes: ROUTES,
  }));
  const receiver = await scene.start();

  const sent = new Map<string, { type: string; user: string; body: Buffer }>();
  const dispatcher = new Pool(new URL(receiver.url).origin, { connections: 16 });
  const lane = async (first: number): Promise<void> => {
    for (let n = first; n < EVENTS; n += 16) {
      const { id, type, body } = madeUpEvent(n, TYPES[n % TYPES.length]);
      const { user_id: user } = JSON.parse(body.toString()) as { user_id: string };
      sent.set(id, { type, user, body });
      const { status } = await receiver.post(body, { id, dispatcher });
      if (status !== 202) throw new Error(`${id} was answered ${status}`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, first) => lane(first)));
  await dispatcher.destroy();

  const { results } = (await scene.json('route', ...TYPES)) as {
    results: { type: string; targets: { sink: string; destination: string | null }[] }[];
  };
  const placesOf = new Map(
    results.map(({ type, targets }) => [
      type,
      targets.flatMap(({ sink, destination }) =>
        sink === 'archive' ? [] : [`${sink}:${destination ?? 'events'}`],
      ),
    ]),
  );
  const expected = new Map<string, Set<string>>();
  for (const [id, { type }] of sent) {
    for (const place of placesOf.get(type) ?? [])
      expected.set(place, (expected.get(place) ?? new Set()).add(id));
  }
  const arrivals = await consume(
    peer,
    client,
    new Map(Array.from(expected, ([place, ids]) => [place, ids.size])),
  );

  expect([...arrivals.keys()].toSorted()).toEqual([...expected.keys()].toSorted());
  for (const [place, ids] of expected) {
    const here = arrivals.get(place) ?? new Map<string, Received>();
    expect({ place, ids: new Set(here.keys()) }).toEqual({ place, ids });
    for (const [id, { metadata, key, body }] of here) {
      const { type, user, body: original } = sent.get(id)!;
      if (!body.equals(original)) throw new Error(`${place} ${id}: other bytes than were sent`);
      expect(metadata).toMatchObject({ 'event-type': type, 'user-id': user, 'team-id': MADE_UP_TEAM });
      expect(key).toBe(user);
    }
  }
  await receiver.drained();
  await receiver.stop();
  const found = await scene.archived();
  expectConserved(found, new Map(Array.from(sent, ([id, { body }]) => [id, body])));
  expectOnce(found);
});
