import { EventHubProducerClient } from '@azure/event-hubs';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent, type MadeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { Place } from '../support/place.ts';
import { expectConserved, expectOnce } from '../support/read-back.ts';
import { until } from '../support/until.ts';

const EVENTS = Array.from({ length: 60 }, (_, n) => madeUpEvent(n));

/** Every second one compressed. */
function messageOf({ id, type, body }: MadeUpEvent, n: number) {
  const { user_id: user } = JSON.parse(body.toString()) as { user_id: string };
  const properties = { 'event-type': type, 'user-id': user, 'idempotency-key': id };
  if (n % 2 === 1) return { body, properties };
  return { body: gzipSync(body), properties: { ...properties, 'content-encoding': 'gzip' } };
}

test('what an ETL pipeline publishes lands in the archive once, over a kill; what cannot be read is in quarantine', async () => {
  const peer = await startAmqpPeer({ hubs: ['pipeline'] });
  const { connectionString } = peer;
  const producer = new EventHubProducerClient(connectionString, 'pipeline');
  onTestFinished(async () => {
    await producer.close();
    await peer.stop();
  });
  const place = await Place.make({
    sources: { hub: { type: 'event-hubs', connectionString, hub: 'pipeline' } },
  });
  const first = await place.startProcess();
  await producer.sendBatch(EVENTS.map(messageOf));
  await until('all events', async () => (await first.status()).journal.lastSeq === EVENTS.length);
  await first.kill('SIGKILL');

  // The same again, something new, and something that cannot be read.
  const late = madeUpEvent(1000);
  const odd = { 'event-type': 'daily.odd', 'content-encoding': 'made-up' };
  await producer.sendBatch([
    ...EVENTS.slice(0, 10).map(messageOf),
    messageOf(late, 0),
    { body: Buffer.from('?'), properties: odd },
  ]);
  const second = await place.start();
  await until('the new event', async () => (await second.status()).journal.lastSeq === EVENTS.length + 1);
  const [quarantined] = await until('the odd one in quarantine', async () => {
    const listed = await place.documents('quarantine', 'list');
    return listed.length > 0 && listed;
  });
  expect(quarantined).toMatchObject({ event_type: 'daily.odd', reasons: [{ code: 'encoding_unknown' }] });
  await second.drained();
  await second.stop();
  const found = await place.archived();
  expectConserved(found, new Map([...EVENTS, late].map(({ id, body }) => [id, body])));
  expectOnce(found);
  expect(new Set([...found.values()].flat().map(({ record }) => record.source))).toEqual(new Set(['hub']));
});
