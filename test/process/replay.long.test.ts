import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import type { Event } from '../../src/core/event.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { writeArchive } from '../replay/made-up-archive.ts';
import type { PeerMessage } from '../support/amqp-peer/hub.ts';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { CommandProcess } from '../support/command-process.ts';
import { Place } from '../support/place.ts';
import { expectConserved, expectOnce } from '../support/read-back.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

/** How many events a replay has noted as done. */
function selectedIn(state: string): number {
  const file = join(state, 'state.json');
  if (!existsSync(file)) return 0;
  return (JSON.parse(readFileSync(file, 'utf8')) as { counts: { selected: number } }).counts.selected;
}

/** Every expected event is there with its own id and bytes, and nothing else is. */
function expectAll(messages: readonly PeerMessage[], expected: readonly Event[]): void {
  const byId = new Map(messages.map((message) => [message.properties['idempotency-key'] ?? '', message]));
  const wrong: string[] = [];
  for (const { id, type, user, body } of expected) {
    const { properties = {}, partitionKey, body: bytes = Buffer.alloc(0) } = byId.get(id) ?? {};
    const sent = properties['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
    if (!byId.delete(id)) wrong.push(`${id}: missing`);
    else if (!sent.equals(body)) wrong.push(`${id}: other bytes`);
    else if (properties['event-type'] !== type || partitionKey !== user) wrong.push(`${id}: other metadata`);
  }
  for (const id of byId.keys()) wrong.push(`${id}: not asked for`);
  expect(wrong.slice(0, 20), `of ${expected.length} expected`).toEqual([]);
}

/** One event after the other, each after the answer to the one before, until it is stopped. */
function liveTraffic(receiver: Serving): { stop(): Promise<string[]> } {
  const acknowledged: string[] = [];
  const over = new AbortController();
  const sending = (async () => {
    for (let n = 0; !over.signal.aborted; n += 1) acknowledged.push(...(await receiver.send(1, n)).keys());
  })();
  return {
    stop: async () => {
      over.abort();
      await sending;
      return acknowledged;
    },
  };
}

test('fault 33: during live traffic, twice, interrupted: marked, rate-limited, same ids, resumes', async () => {
  const peer = await startAmqpPeer({ hubs: ['events'] });
  onTestFinished(() => peer.stop());
  const hubs = { type: 'event-hubs', connectionString: peer.connectionString, hub: 'events' };
  const place = await Place.make((folder) => ({
    sinks: { archive: { type: 'files', path: join(folder, 'archive') }, hubs },
  }));
  const source = place.at('source');
  const events = writeArchive(source, { files: 3, each: 200 });
  const receiver = await place.start();
  const live = liveTraffic(receiver);
  const ids: string[] = [];
  for (const state of ['first', 'second'].map((name) => place.at(name))) {
    const args = ['replay', source, '--routes', '--sink', 'hubs', '--state', state];
    const killed = new CommandProcess([...args, '--config', place.config, '--rate', '100']);
    await until('something noted', () => selectedIn(state) > 0);
    expect(await killed.kill('SIGKILL')).toBe('SIGKILL');
    const left = events.length - selectedIn(state);
    const started = performance.now();
    const summary = await place.json(...args, '--rate', '600', '--resume');
    const whole = { code: 0, ok: true, complete: true, read: events.length, selected: events.length };
    expect(summary).toMatchObject({ ...whole, targets: { hubs: events.length } });
    // Not faster than it may be; a tenth of a second may be caught up on.
    expect(performance.now() - started).toBeGreaterThan(((left - 60) / 600) * 1000);
    expect(existsSync(state)).toBe(false);
    ids.push(summary.replay_id as string);
  }
  const acknowledged = await live.stop();
  await receiver.drained();
  await receiver.stop();

  expect(new Set(ids).size).toBe(2);
  const marked = Map.groupBy(peer.messages('events'), ({ properties }) => properties['replay-id']);
  for (const replayId of ids) expectAll(marked.get(replayId) ?? [], events);
  const ofLive = new Set(marked.get(undefined)?.map(({ properties }) => properties['idempotency-key']));
  expect(acknowledged.length).toBeGreaterThan(0);
  expect(acknowledged.filter((id) => !ofLive.has(id))).toEqual([]);
});

const REFUSED = 'labtest.order.updated';

/** A place with a sink that refuses one type, and archives that nothing is routed to. */
const withCopies = (): Promise<Place> =>
  Place.make((folder) => ({
    sinks: {
      own: { type: join(import.meta.dirname, '../replay/choosy-sink.ts'), folder, refuses: REFUSED },
      ...Object.fromEntries(
        ['one', 'two', 'three', 'four'].map((name) => [name, { type: 'files', path: join(folder, name) }]),
      ),
    },
    routes: [{ match: '*', to: ['own'] }],
    // It notes in the journal what it has seen, while the journal's size is compared.
    schema: { enabled: false },
  }));

test('the journal, quarantine and dead letters, through the running receiver and without one', async () => {
  const place = await withCopies();
  const receiver = await place.start();
  const events = Array.from({ length: 45 }, (_, n) => madeUpEvent(n));
  const sent = await receiver.send(events);
  const refused = events.filter(({ type }) => type === REFUSED);
  const invalid = Buffer.from('{"event_type":"daily.data.meal.created","data":{"made":"up"}}');
  const { json } = await receiver.post(invalid, { id: 'msg_invalid' });
  expect(json).toMatchObject({ status: 'quarantined' });
  const before = await receiver.drained();
  expect(before.journal).toMatchObject({ quarantined: 1, deadLetters: refused.length });

  const replayed = async (input: string, to: string, ...args: string[]): Promise<string[]> => {
    await place.ok('replay', input, '--to', to, ...args);
    return [...(await place.archived(to)).keys()].toSorted();
  };
  expect(await replayed('journal', 'one')).toEqual([...sent.keys()].toSorted());
  expect(await replayed('quarantine', 'two')).toEqual(['msg_invalid']);
  const dead = refused.map(({ id }) => id).toSorted();
  expect(await replayed('dead-letters', 'three', '--sink', 'own')).toEqual(dead);
  const copies = await place.archived('one');
  expectConserved(copies, sent);
  for (const { record } of [...copies.values()].flat())
    expect(record).toMatchObject({ source: 'webhooks', headers: { 'webhook-id': record.id } });
  // Nothing of it was changed by being read.
  expect((await receiver.status()).journal).toEqual(before.journal);
  await receiver.stop();

  const meals = [...sent].filter(([, body]) => body.includes('"daily.data.meal.')).map(([id]) => id);
  expect(await replayed('journal', 'four', '--type', 'daily.data.meal.')).toEqual(meals.toSorted());
});

test('what is in quarantine with a receipt is no erased event of the journal', async () => {
  const place = await Place.make((folder) => ({
    receipts: { path: join(folder, 'receipts'), origin: 'example.com/made-up' },
  }));
  const receiver = await place.start();
  await receiver.send(1);
  await receiver.send([{ id: 'msg_invalid', body: Buffer.from('{}') }]);
  const replayed = () => place.json('replay', 'journal', '--to', 'archive', '--dry-run');
  const expected = { ok: true, read: 1, selected: 1, erased: 0, problems: 0 };
  expect(await replayed()).toMatchObject(expected);
  await receiver.stop();
  expect(await replayed()).toMatchObject(expected);
});

test('SIGTERM: exit code 3, how to continue, and continuing', async () => {
  const place = await withCopies();
  const source = place.at('source');
  const events = writeArchive(source, { files: 1, each: 400 });
  const args = ['replay', source, '--to', 'one'];
  const command = new CommandProcess([...args, '--config', place.config, '--json', '--rate', '200/s']);
  const arrived = async () => (await place.archived('one', { parts: true }).catch(() => new Map())).size;
  await until('the first events', async () => (await arrived()) > 20);
  expect(await command.kill('SIGTERM')).toBe(3);
  expect(command.stderr).toContain('--resume');
  const first = JSON.parse(command.stdout) as { selected: number; replay_id: string };
  expect(first).toMatchObject({ ok: false, complete: false });
  expect(first.selected).toBeLessThan(400);
  // What was interrupted in order was noted in order: nothing comes twice.
  writeFileSync(join(source, 'late.ndjson'), 'what comes later is no part of it\n');
  const whole = { code: 0, ok: true, selected: 400, replay_id: first.replay_id };
  expect(await place.json(...args, '--resume')).toMatchObject(whole);
  const found = await place.archived('one');
  expect([...found.keys()].toSorted()).toEqual(events.map(({ id }) => id).toSorted());
  expectOnce(found);
});
