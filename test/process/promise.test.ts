import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { verifyArchive } from '../../src/archive/verify.ts';
import { MADE_UP_TEAM, madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { eventOf, find, secretOf, userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { segmentsOf } from '../support/journal-files.ts';
import { type Ended, millrace, writeConfig } from '../support/millrace.ts';
import { expectConserved, expectOnce, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

// The promise, a sentence a test. The files around this one, and the long lane, have each of them under many faults.

const moduleIn = (name: string): string => join(import.meta.dirname, name);

/** A receiver's folder with an archive, a second one, and a sink that takes nothing until `open` is called. */
async function place(change: (archive: object) => Readonly<Record<string, object>> = () => ({})) {
  const folder = await temporaryFolder();
  const [archive, copy] = [join(folder, 'archive'), join(folder, 'copy')];
  const files = { type: 'files', path: archive };
  const config = writeConfig(folder, {
    delivery: { retryInitial: '20ms', retryMax: '50ms' },
    sinks: {
      archive: files,
      copy: { type: 'files', path: copy },
      gated: { type: moduleIn('gated-sink.ts'), folder },
    },
    routes: [
      { match: 'historical.', to: [] },
      { match: '*', to: ['archive', 'copy', 'gated'] },
    ],
    ...change(files),
  });
  const run = (...args: string[]): Promise<Ended> => millrace([...args, '--config', config]);
  return { folder, archive, copy, config, run, open: () => writeFileSync(join(folder, 'gate'), '') };
}

/** An event of a type and a value that nobody knows, in bytes that no program would write again the same. */
const ODD = {
  id: 'msg_odd',
  body: Buffer.from(
    `{ "event_type":"nobody.knows.this",\n\t"team_id":"${MADE_UP_TEAM}", "user_id":"${userId(1)}", "client_user_id":"made up",
    "data":{"status":"unheard_of","\\u0061":"\\u00e9\\/é","n":[1.10,1e2,12345678901234567890],"none":null} }\n`,
  ),
};
const EVENTS = [...Array.from({ length: 20 }, (_, n) => madeUpEvent(n, 'daily.data.meal.created')), ODD];
const SENT = new Map(EVENTS.map(({ id, body }) => [id, body]));

async function postAll(url: string): Promise<Set<number>> {
  const answers = await Promise.all(EVENTS.map(({ id, body }) => postSigned(url, body, { id })));
  return new Set(answers.map(({ status }) => status));
}

test('what is answered with 2xx is at each sink of its route after kill -9, once, in the bytes that were signed; again, it is a duplicate', async () => {
  const { archive, copy, config, run, open } = await place();
  const receiver = await ReceiverProcess.start(config);
  expect(await postAll(receiver.url)).toEqual(new Set([202]));
  expect(await postAll(receiver.url)).toEqual(new Set([200]));
  await receiver.kill('SIGKILL');
  const next = await Receiver.start(config);
  expect(await postAll(next.url)).toEqual(new Set([200]));
  open();
  await next.drained();
  expect(await next.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  for (const folder of [archive, copy]) {
    const found = await readBack(folder);
    expectConserved(found, SENT);
    expectOnce(found);
    await expectWhole(folder);
  }
  expect(await run('reconcile')).toMatchObject({ code: 0 });
});

test('a sink that takes nothing stops no other one, until the journal is full; with room again all goes on by itself', async () => {
  const { archive, config, open } = await place(() => ({ journal: { maxBytes: '4MiB' } }));
  const receiver = await Receiver.start(config);
  const accepted = new Map<string, Buffer>();
  const padding = Buffer.alloc(200_000, 0x20);
  const refused = await until('a refusal', async () => {
    const { id, body } = madeUpEvent(accepted.size);
    const large = Buffer.concat([body, padding]);
    const answer = await postSigned(receiver.url, large, { id });
    if (answer.status === 202) accepted.set(id, large);
    return answer.status === 202 ? null : answer;
  });
  expect(refused).toMatchObject({ status: 503, json: { code: 'journal_full' } });
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  await until('the other sinks to have all', async () => {
    const { cursors } = (await receiver.status()).journal;
    return cursors.every(({ sink, backlog }) => backlog === 0 || sink === 'gated');
  });
  open();
  const { id, body } = madeUpEvent(0);
  await until('room again', async () => (await postSigned(receiver.url, body, { id })).status === 202);
  await receiver.drained();
  await receiver.kill('SIGTERM');
  const ofRoutes = [...accepted].filter(([, bytes]) => !bytes.includes('"historical.'));
  expectConserved(await readBack(archive), new Map([...ofRoutes, [id, body]]));
});

test('nothing is dropped in silence: quarantined, dead, unrouted and delivered add up', async () => {
  const { run, config } = await place(() => ({
    sinks: { refuses: { type: moduleIn('refusing-sink.ts') } },
    routes: [
      { match: 'historical.', to: [] },
      { match: '*', to: ['refuses'] },
    ],
  }));
  const receiver = await Receiver.start(config);
  await postAll(receiver.url);
  const [other, unrouted] = [madeUpEvent(99, 'daily.data.meal.created'), madeUpEvent(3)];
  expect(unrouted.type).toMatch(/^historical\./);
  expect(await postSigned(receiver.url, other.body, { id: ODD.id })).toMatchObject({
    status: 202,
    json: { status: 'quarantined', code: 'id_reused' },
  });
  expect(await postSigned(receiver.url, Buffer.from('[]'), { id: 'msg_list' })).toMatchObject({
    status: 202,
    json: { status: 'quarantined' },
  });
  expect((await postSigned(receiver.url, unrouted.body, { id: unrouted.id })).status).toBe(202);
  await receiver.drained();
  const { journal } = await receiver.status();
  expect(journal).toMatchObject({ quarantined: 2, deadLetters: EVENTS.length });
  const report = await run('reconcile', '--json');
  expect(report, report.stdout).toMatchObject({ code: 0 });
  const { length: dead } = EVENTS;
  expect(JSON.parse(report.stdout)).toMatchObject({
    differences: [],
    sinks: [{ received: dead + 3, dead, quarantined: 2, elsewhere: 1, missing: 0 }],
  });
});

test('what is lost is named: in the log, by a metric, and by reconcile with exit code 4', async () => {
  const { folder, config, run, open } = await place();
  const receiver = await ReceiverProcess.start(config);
  await postAll(receiver.url);
  await receiver.kill('SIGKILL');
  for (const segment of segmentsOf(join(folder, 'journal'))) rmSync(segment);
  open();
  const next = await Receiver.start(config);
  await next.drained();
  expect(next.stderr).toMatch(/segment events-\S+ is gone, with at least the events 1 to/);
  const metrics = await (
    await request(`${next.adminUrl}/metrics`, { headers: next.authorization })
  ).body.text();
  expect(Number(/^millrace_journal_damaged_records (\d+)/m.exec(metrics)?.[1])).toBeGreaterThan(0);
  const report = await run('reconcile');
  expect(report.code).toBe(4);
  expect(report.stdout).toMatch(/difference gated: missing: \d+ never delivered to it: segment/);
});

test('what should be there and is not is no fresh start: a journal without its database and its note is refused by name', async () => {
  const { folder, config, run } = await place();
  const receiver = await ReceiverProcess.start(config);
  await postAll(receiver.url);
  await receiver.kill('SIGKILL');
  for (const name of ['.db', '.db-wal', '.db-shm', '.note'])
    rmSync(join(folder, 'journal', `journal${name}`), { force: true });
  const refused = await run('serve');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/may all wait.*millrace journal recover/s);
});

test('an erased user is gone from the journal, the archive, the quarantine and the dead letters, and stays so', async () => {
  const { folder, archive, config, run } = await place((files) => ({
    sinks: { archive: files, refuses: { type: moduleIn('refusing-sink.ts') } },
    routes: [{ match: '*', to: ['archive', 'refuses'] }],
  }));
  const receiver = await Receiver.start(config);
  const events = [1, 2].flatMap((user) => [eventOf(user, 1), eventOf(user, 2)]);
  for (const { id, body } of events) expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  const invalid = Buffer.from(JSON.stringify({ user_id: userId(1), note: secretOf(1) }));
  expect(await postSigned(receiver.url, invalid, { id: 'msg_invalid' })).toMatchObject({
    json: { status: 'quarantined' },
  });
  await receiver.drained();
  expect(await run('flush')).toMatchObject({ code: 0 });
  expect(await run('erase', userId(1), '--now')).toMatchObject({ code: 0 });
  const again = eventOf(1, 3);
  expect(await postSigned(receiver.url, again.body, { id: again.id })).toMatchObject({
    status: 202,
    json: { status: 'erased' },
  });
  await receiver.kill('SIGTERM');
  expect(find([folder], [secretOf(1)])).toEqual([]);
  expect([...(await readBack(archive)).keys()].toSorted()).toEqual(['msg_2_1', 'msg_2_2']);
  expect((await verifyArchive(archive)).differences).toEqual([]);
});

test('an archive can be replayed into another sink, with the same ids and bytes', async () => {
  const { archive, copy, config, run, open } = await place(() => ({
    routes: [{ match: '*', to: ['archive'] }],
  }));
  open();
  const receiver = await Receiver.start(config);
  await postAll(receiver.url);
  await receiver.drained();
  await receiver.kill('SIGTERM');
  expect(await run('replay', archive, '--to', 'copy')).toMatchObject({ code: 0 });
  const found = await readBack(copy);
  expectConserved(found, SENT);
  expectOnce(found);
});
