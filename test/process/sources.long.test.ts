import { EventHubProducerClient } from '@azure/event-hubs';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent, type MadeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { Place } from '../support/place.ts';
import { PubSubAdmin } from '../support/pubsub-admin.ts';
import { PROJECT, startPubSubPeer } from '../support/pubsub-peer/peer.ts';
import { expectConserved, expectOnce } from '../support/read-back.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

const events = Array.from({ length: 60 }, (_, n) => madeUpEvent(n));
const userOf = ({ body }: MadeUpEvent): string =>
  (JSON.parse(body.toString()) as { user_id: string }).user_id;

test('what the ETL pipelines publish lands in the archive: compressed or not, in either spelling, once', async () => {
  const hubs = await startAmqpPeer({ hubs: ['pipeline'] });
  onTestFinished(() => hubs.stop());
  const topics = await startPubSubPeer({ topics: [] });
  onTestFinished(() => topics.stop());
  const admin = new PubSubAdmin(topics.endpoint);
  onTestFinished(() => admin.close());
  await admin.create('pipeline');

  const place = await Place.make({
    sources: {
      hub: { type: 'event-hubs', connectionString: hubs.connectionString, hub: 'pipeline' },
      topic: { type: 'pubsub', project: PROJECT, subscription: 'pipeline', endpoint: topics.endpoint },
    },
  });
  const first = await place.startProcess();

  const producer = new EventHubProducerClient(hubs.connectionString, 'pipeline');
  onTestFinished(() => producer.close());
  const [hubEvents, topicEvents] = [events.slice(0, 30), events.slice(30)];
  await producer.sendBatch(hubEvents.map(toHub));
  for (const [n, event] of topicEvents.entries()) await admin.publish('pipeline', toTopic(event, n));
  await until('all events to be journaled', async () => (await received(first)) === events.length);
  await first.kill('SIGKILL');

  // The same again, something new, and something that nobody can read.
  const late = madeUpEvent(1000);
  const properties = { 'event-type': 'daily.odd', 'content-encoding': 'made-up' };
  const odd = { body: Buffer.from('?'), properties };
  await producer.sendBatch([...hubEvents.slice(0, 5).map(toHub), toHub(late, 0), odd]);
  for (const [n, event] of topicEvents.slice(0, 5).entries())
    await admin.publish('pipeline', toTopic(event, n));
  const second = await place.start();
  await until('the new event', async () => (await received(second)) === events.length + 1);
  const [quarantined] = await until('the odd one in quarantine', async () => {
    const listed = await place.documents('quarantine', 'list');
    return listed.length > 0 && listed;
  });
  expect(quarantined).toMatchObject({ event_type: 'daily.odd', reasons: [{ code: 'encoding_unknown' }] });
  await second.drained();
  await second.stop();

  const found = await place.archived();
  expectConserved(found, new Map([...events, late].map(({ id, body }) => [id, body])));
  expectOnce(found);
  const sources = new Set([...found.values()].flat().map(({ record }) => record.source));
  expect([...sources].toSorted()).toEqual(['hub', 'topic']);
});

function toHub(event: MadeUpEvent, n: number) {
  return {
    body: n % 2 === 0 ? gzipSync(event.body) : event.body,
    properties: {
      'event-type': event.type,
      'user-id': userOf(event),
      'idempotency-key': event.id,
      ...(n % 2 === 0 ? { 'content-encoding': 'gzip' } : {}),
    },
  };
}

function toTopic(event: MadeUpEvent, n: number) {
  return {
    data: n % 2 === 0 ? gzipSync(event.body) : event.body,
    attributes: {
      event_type: event.type,
      blob_type: 'json',
      idempotency_key: event.id,
      ...(n % 2 === 0 ? { blob_codec: 'gzip' } : {}),
    },
  };
}

async function received(receiver: Serving): Promise<number> {
  return (await receiver.status()).journal.lastSeq;
}
