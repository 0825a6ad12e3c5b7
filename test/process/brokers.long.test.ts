import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MADE_UP_TEAM, madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { unpacked } from '../sinks/broker-support.ts';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { Place } from '../support/place.ts';
import { PROJECT, startPubSubPeer } from '../support/pubsub-peer/peer.ts';
import { expectConserved, expectOnce } from '../support/read-back.ts';
import { runCount } from '../support/run-count.ts';

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
  'something.never.documented',
];
/** Senders at the same time. */
const LANES = 16;
const EVENTS = Array.from({ length: runCount({ long: 10_000 }) }, (_, n) =>
  madeUpEvent(n, TYPES[n % TYPES.length]),
);

/** A message as its consumer sees it, in one text. */
function shown(metadata: Readonly<Record<string, unknown>>, key: string | null, body: Buffer): string {
  const names = ['idempotency-key', 'event-type', 'user-id', 'team-id'];
  return [...names.map((name) => metadata[name]), key, body.toString('latin1')].join(' ');
}

const WANTED = new Map(
  EVENTS.map(({ id, type, body }) => {
    const { user_id: user } = JSON.parse(body.toString()) as { user_id: string };
    const metadata = { 'idempotency-key': id, 'event-type': type, 'user-id': user, 'team-id': MADE_UP_TEAM };
    return [id, { type, text: shown(metadata, user, body) }];
  }),
);

interface Explained {
  readonly type: string;
  readonly targets: readonly { readonly sink: string; readonly destination: string | null }[];
}

test(`${EVENTS.length} events of 6 types are each exactly where \`millrace route\` says, with their metadata and their bytes`, async () => {
  const hubs = await startAmqpPeer({ hubs: HUBS });
  const topics = await startPubSubPeer({ topics: TOPICS });
  onTestFinished(async () => void (await Promise.all([hubs.stop(), topics.stop()])));
  const { connectionString } = hubs;
  const { endpoint } = topics;
  const place = await Place.make((folder) => ({
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      hubs: { type: 'event-hubs', connectionString, hub: 'events' },
      topics: { type: 'pubsub', project: PROJECT, topic: 'events', ordering: true, endpoint },
    },
    routes: ROUTES,
  }));
  const receiver = await place.start();
  await Promise.all(
    Array.from({ length: LANES }, (_, lane) => receiver.send(EVENTS.filter((__, n) => n % LANES === lane))),
  );
  await receiver.drained();
  await receiver.stop();

  const { results } = (await place.json('route', ...TYPES)) as { results: Explained[] };
  const textsFor = (sink: string, name: string): Set<string> => {
    const isHere = (target: Explained['targets'][number]): boolean =>
      target.sink === sink && (target.destination ?? 'events') === name;
    const here = results.filter(({ targets }) => targets.some(isHere));
    const types = new Set(here.map(({ type }) => type));
    return new Set([...WANTED.values()].filter(({ type }) => types.has(type)).map(({ text }) => text));
  };
  for (const name of HUBS) {
    const found = hubs
      .messages(name)
      .map((one) =>
        shown(one.properties, one.partitionKey, unpacked(one.body, one.properties['content-encoding'])),
      );
    expect([name, new Set(found)]).toEqual([name, textsFor('hubs', name)]);
  }
  for (const name of TOPICS) {
    const found = topics
      .messages(name)
      .map((one) => shown(one.attributes, one.orderingKey, unpacked(one.data, one.attributes['blob-codec'])));
    expect([name, new Set(found)]).toEqual([name, textsFor('topics', name)]);
  }
  const found = await place.archived();
  expectConserved(found, new Map(EVENTS.map(({ id, body }) => [id, body])));
  expectOnce(found);
});
