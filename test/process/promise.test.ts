import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyArchive } from '../../src/archive/verify.ts';
import { MADE_UP_TEAM, madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { eventOf, find, secretOf, userId } from '../privacy/erase/support.ts';
import { segmentsOf } from '../support/journal-files.ts';
import { Place, printing, saying } from '../support/place.ts';
import { expectConserved, expectOnce, expectWhole } from '../support/read-back.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

// The promise, a sentence a test. The files around this one, and the long lane, have each of them under many faults.

const GATED = join(import.meta.dirname, 'gated-sink.ts');

/** A receiver's folder with an archive, a second one, and a sink that takes nothing until it is opened. */
function placeWith(change: (archive: object) => object = () => ({})): Promise<Place> {
  return Place.make((folder) => {
    const archive = { type: 'files', path: join(folder, 'archive') };
    return {
      delivery: { retryInitial: '20ms', retryMax: '50ms' },
      sinks: {
        archive,
        copy: { type: 'files', path: join(folder, 'copy') },
        gated: { type: GATED, folder },
      },
      routes: [
        { match: 'historical.', to: [] },
        { match: '*', to: ['archive', 'copy', 'gated'] },
      ],
      ...change(archive),
    };
  });
}

const open = (place: Place): void => writeFileSync(place.at('gate'), '');

/** An event of a type and a value that are not documented, in bytes that no program would write again the same. */
const ODD = {
  id: 'msg_odd',
  body: Buffer.from(
    `{ "event_type":"not.documented.this",\n\t"team_id":"${MADE_UP_TEAM}", "user_id":"${userId(1)}", "client_user_id":"made up",
    "data":{"status":"unheard_of","\\u0061":"\\u00e9\\/é","n":[1.10,1e2,12345678901234567890],"none":null} }\n`,
  ),
};
const EVENTS = [...Array.from({ length: 20 }, (_, n) => madeUpEvent(n, 'daily.data.meal.created')), ODD];
const SENT = new Map(EVENTS.map(({ id, body }) => [id, body]));

async function postAll(receiver: Serving): Promise<Set<number>> {
  const answers = await Promise.all(EVENTS.map(({ id, body }) => receiver.post(body, { id })));
  return new Set(answers.map(({ status }) => status));
}

test('what is answered with 2xx is at each sink of its route after kill -9, once, in the bytes that were signed; again, it is a duplicate', async () => {
  const place = await placeWith();
  const receiver = await place.startProcess();
  expect(await postAll(receiver)).toEqual(new Set([202]));
  expect(await postAll(receiver)).toEqual(new Set([200]));
  await receiver.kill('SIGKILL');
  const next = await place.start();
  expect(await postAll(next)).toEqual(new Set([200]));
  open(place);
  await next.drained();
  await next.stop();
  for (const name of ['archive', 'copy']) {
    const found = await place.archived(name);
    expectConserved(found, SENT);
    expectOnce(found);
    await expectWhole(place.at(name));
  }
  await place.ok('reconcile');
});

test('a sink that takes nothing stops no other one, until the journal is full; with room again all continues by itself', async () => {
  const place = await placeWith(() => ({ journal: { maxBytes: '4MiB' } }));
  const receiver = await place.start();
  const accepted = new Map<string, Buffer>();
  const padding = Buffer.alloc(200_000, 0x20);
  const refused = await until('a refusal', async () => {
    const { id, body } = madeUpEvent(accepted.size);
    const large = Buffer.concat([body, padding]);
    const answer = await receiver.post(large, { id });
    if (answer.status === 202) accepted.set(id, large);
    return answer.status === 202 ? null : answer;
  });
  expect(refused).toMatchObject({ status: 503, json: { code: 'journal_full' } });
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  await until('the other sinks to have all', async () => {
    const { cursors } = (await receiver.status()).journal;
    return cursors.every(({ sink, backlog }) => backlog === 0 || sink === 'gated');
  });
  open(place);
  const { id, body } = madeUpEvent(0);
  await until('room again', async () => (await receiver.post(body, { id })).status === 202);
  await receiver.drained();
  await receiver.stop();
  const ofRoutes = [...accepted].filter(([, bytes]) => !bytes.includes('"historical.'));
  expectConserved(await place.archived(), new Map([...ofRoutes, [id, body]]));
});

test('nothing is dropped in silence: quarantined, dead, unrouted and delivered add up', async () => {
  const place = await placeWith(() => ({
    sinks: { refuses: { type: GATED, refuses: true } },
    routes: [
      { match: 'historical.', to: [] },
      { match: '*', to: ['refuses'] },
    ],
  }));
  const receiver = await place.start();
  await postAll(receiver);
  const [other, unrouted] = [madeUpEvent(99, 'daily.data.meal.created'), madeUpEvent(3)];
  expect(unrouted.type).toMatch(/^historical\./);
  expect(await receiver.post(other.body, { id: ODD.id })).toMatchObject({
    status: 202,
    json: { status: 'quarantined', code: 'id_reused' },
  });
  expect(await receiver.post(Buffer.from('[]'), { id: 'msg_list' })).toMatchObject({
    status: 202,
    json: { status: 'quarantined' },
  });
  await receiver.send([unrouted]);
  await receiver.drained();
  const { journal } = await receiver.status();
  expect(journal).toMatchObject({ quarantined: 2, deadLetters: EVENTS.length });
  const { length: dead } = EVENTS;
  expect(await place.json('reconcile')).toMatchObject({
    code: 0,
    differences: [],
    sinks: [{ received: dead + 3, dead, quarantined: 2, elsewhere: 1, missing: 0 }],
  });
});

test('what is lost is named: in the log, by a metric, and by reconcile with exit code 4', async () => {
  const place = await placeWith();
  const receiver = await place.startProcess();
  await postAll(receiver);
  await receiver.kill('SIGKILL');
  for (const segment of segmentsOf(place.at('journal'))) rmSync(segment);
  open(place);
  const next = await place.start();
  await next.drained();
  expect(next.stderr).toMatch(/segment events-\S+ is gone, with at least the events 1 to/);
  expect(await next.metrics()).toMatch(/^millrace_journal_damaged_records [1-9]/m);
  expect(await place.ok('status')).toMatch(/damaged +\d+ records/);
  expect(await place.run('reconcile')).toMatchObject(
    printing(4, /difference gated: missing: \d+ never delivered to it: segment/),
  );
});

test('what should be there and is not is no fresh start: a journal without its database and its note is refused by name', async () => {
  const place = await placeWith();
  const receiver = await place.startProcess();
  await postAll(receiver);
  await receiver.kill('SIGKILL');
  for (const name of ['.db', '.db-wal', '.db-shm', '.note'])
    rmSync(place.at('journal', `journal${name}`), { force: true });
  expect(await place.run('serve')).toMatchObject(saying(1, /may all wait.*millrace journal recover/s));
});

test('an erased user is gone from the journal, the archive, the quarantine and the dead letters, and stays so', async () => {
  const place = await placeWith((files) => ({
    sinks: { archive: files, refuses: { type: GATED, refuses: true } },
    routes: [{ match: '*', to: ['archive', 'refuses'] }],
  }));
  const receiver = await place.start();
  await receiver.send([1, 2].flatMap((user) => [eventOf(user, 1), eventOf(user, 2)]));
  const invalid = Buffer.from(JSON.stringify({ user_id: userId(1), note: secretOf(1) }));
  expect(await receiver.post(invalid, { id: 'msg_invalid' })).toMatchObject({
    json: { status: 'quarantined' },
  });
  await receiver.drained();
  await place.ok('flush');
  await place.ok('erase', userId(1), '--now');
  const again = eventOf(1, 3);
  expect(await receiver.post(again.body, { id: again.id })).toMatchObject({
    status: 202,
    json: { status: 'erased' },
  });
  await receiver.stop();
  // The log of the process, too.
  writeFileSync(place.at('log'), receiver.stderr);
  expect(find([place.folder], [userId(1), secretOf(1)])).toEqual([]);
  expect([...(await place.archived()).keys()].toSorted()).toEqual(['msg_2_1', 'msg_2_2']);
  expect((await verifyArchive(place.at('archive'))).differences).toEqual([]);
});

test('an archive can be replayed into another sink, with the same ids and bytes', async () => {
  const place = await placeWith(() => ({
    routes: [{ match: '*', to: ['archive'] }],
  }));
  open(place);
  const receiver = await place.start();
  await postAll(receiver);
  await receiver.drained();
  await receiver.stop();
  expect(await place.run('replay', place.at('archive'), '--to', 'copy')).toMatchObject({ code: 0 });
  const found = await place.archived('copy');
  expectConserved(found, SENT);
  expectOnce(found);
});
