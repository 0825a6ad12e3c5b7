import { cpSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { SEGMENT_HEADER } from '../../src/journal/segments/format.ts';
import { decodeRecords, encodeRecords } from '../../src/journal/segments/records.ts';
import { Transactions } from '../../src/journal/transactions.ts';
import { openDatabase } from '../../src/journal/database.ts';
import { Events } from '../../src/journal/events.ts';
import type { Store } from '../../src/journal/store.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { segmentsOf } from '../support/journal-files.ts';
import { allIn, append, batchOf, eventsIn, named, NOW, openStore } from './support.ts';
import { DEFAULT_FIELDS } from '../../src/receive/validate/envelope.ts';

/** What a process that is killed now leaves behind. */
async function killed(path: string): Promise<string> {
  const copy = join(await temporaryFolder(), 'copy');
  cpSync(path, copy, { recursive: true });
  return copy;
}

const databaseIn = (path: string): string[] =>
  readdirSync(path).filter((name) => name.startsWith('journal.db'));

/** A dead letter of one event. */
function refuse(store: Store, seq: number, destination: string | null): void {
  const [event] = eventsIn(store, seq - 1, { count: 1, bytes: 1e9 });
  const about = { sink: 'hubs', destination, code: 'made_up', reason: '', attempts: 1, diedAt: NOW, seq };
  store.addDeadLetter(about, { records: encodeRecords([{ event: event! }]) });
}

const countsOf = (store: Store): Record<string, number> =>
  Object.fromEntries(store.account(0, 2 * NOW).counts.map(({ kind, n }) => [kind, n]));

test('ids are those of before the kill, wherever they stand', async () => {
  const path = await temporaryFolder();
  const store = openStore(path);
  append(store, 'a', 'b');
  store.append(batchOf(named('q'), '[]'), NOW);
  const other = makeEvent({ id: 'a', receivedAt: NOW, body: Buffer.from('{}') });
  expect(store.append(batchOf([other]), NOW + 1).answers).toEqual([-2]);
  const again = openStore(await killed(path));
  const { answers } = again.append(batchOf([...named('a', 'b', 'q'), other, ...named('new')]), NOW + 60_000);
  expect(answers).toEqual([0, 0, 0, 0, 3]);
  const later = openStore(await killed(path));
  expect(later.append(batchOf(named('a', 'q')), NOW + 60_001).answers).toEqual([3, 4]);
});

test('what came with a known id and other bytes is in quarantine once, killed at each step of its batch', async () => {
  const path = await temporaryFolder();
  const store = openStore(path);
  append(store, 'a');
  const other = makeEvent({ id: 'a', receivedAt: NOW, body: Buffer.from('{}') });
  const batch = () => batchOf([...named('b'), other, ...named('c')]);
  const left = [await killed(path)];
  // Both are synchronous: the frame follows the transaction in the same turn.
  const between = join(await temporaryFolder(), 'copy');
  const frame = vi.spyOn(Events.prototype, 'append').mockImplementationOnce(function (
    this: Events,
    ...given
  ) {
    cpSync(path, between, { recursive: true });
    frame.mockRestore();
    this.append(...given);
  });
  onTestFinished(() => frame.mockRestore());
  expect(store.append(batch(), NOW).answers).toEqual([2, -2, 3]);
  left.push(between, await killed(path));
  for (const [step, folder] of left.entries()) {
    const again = openStore(folder);
    // None of it was answered, so all of it comes again.
    again.append(batch(), NOW + 1);
    expect(
      allIn(again).map(({ id }) => id),
      `step ${step}`,
    ).toEqual(['a', 'b', 'c']);
    const { records, about } = again.setAside.listQuarantine({}, true);
    expect(
      [decodeRecords(records).map(({ id }) => id), about.map(({ reasons }) => reasons)],
      `step ${step}`,
    ).toMatchObject([['a'], [[{ code: 'id_reused' }]]]);
  }
});

/** Appends events again, and is killed when their frame is written and the database does not know it yet. */
async function killedWhileReappending(path: string, work: (store: Store) => void): Promise<string> {
  const store = openStore(path);
  const copy = join(await temporaryFolder(), 'copy');
  const remove = vi.spyOn(store.setAside, 'remove').mockImplementationOnce(() => {
    cpSync(path, copy, { recursive: true });
    return [];
  });
  onTestFinished(() => remove.mockRestore());
  work(store);
  expect(remove).toHaveBeenCalled();
  return copy;
}

test('killed while an event is released, it is in the journal once and in quarantine no more', async () => {
  const copy = await killedWhileReappending(await temporaryFolder(), (store) => {
    store.append(batchOf(named('q', 'r'), '[]'), NOW);
    store.release(1, { records: encodeRecords([{ event: named('q')[0]! }]) }, NOW);
  });
  const store = openStore(copy);
  expect(allIn(store).map(({ id }) => id)).toEqual(['q']);
  const { records } = store.setAside.listQuarantine({}, true);
  expect(decodeRecords(records).map(({ id }) => id)).toEqual(['r']);
  expect(countsOf(store)).toEqual({ quarantined: 2, released: 1 });
  expect(store.release(1, { records: encodeRecords([{ event: named('q')[0]! }]) }, NOW)).toEqual({
    released: false,
    lastSeq: 1,
  });
});

const HIDDEN = [{ redact: ['/data/name'], fields: DEFAULT_FIELDS }];

test('killed while dead letters are retried, they wait for their sink, which had left, and are dead letters no more', async () => {
  const copy = await killedWhileReappending(await temporaryFolder(), (store) => {
    store.cursors.open('hubs');
    append(store, 'a', 'b', 'c');
    const about = { destination: 'events', code: 'made_up', reason: '', diedAt: NOW };
    const deadLetters = [
      { seq: 1, ...about },
      { seq: 2, ...about, redactions: HIDDEN },
    ];
    store.addDeadLetters({ sink: 'hubs', upTo: 3, deadLetters });
    store.cursors.leave('hubs');
    store.retryDeadLetters({ keys: [1, 2] }, NOW);
  });
  const store = openStore(copy);
  expect(store.status(NOW)).toMatchObject({ deadLetters: 0, lastSeq: 5 });
  expect(allIn(store).map(({ id, handling }) => [id, handling])).toEqual([
    ['a', {}],
    ['b', {}],
    ['c', {}],
    ['a', { only: ['hubs:events'] }],
    // No route has these redactions any more.
    ['b', { only: ['hubs:events'], redactions: HIDDEN }],
  ]);
  expect(store.cursors.open('hubs')).toBe(3);
});

test('ids whose frame has lost its head count from when their events were received', async () => {
  const path = await temporaryFolder();
  const store = openStore(path);
  append(store, 'a');
  append(store, 'b');
  store.close();
  const [segment = ''] = segmentsOf(path);
  const bytes = readFileSync(segment);
  bytes[SEGMENT_HEADER + 50] = ~(bytes[SEGMENT_HEADER + 50] ?? 0);
  writeFileSync(segment, bytes);
  expect(append(openStore(path), 'a', 'b', 'c')).toEqual([0, 0, 3]);
});

test('what was appended again on a disk with no room for the rest is not appended once more by the next try', async () => {
  const path = await temporaryFolder();
  const store = openStore(path);
  store.cursors.open('slow');
  append(store, 'a');
  const [event] = allIn(store);
  if (event === undefined) throw new Error('no event');
  const about = { destination: null, code: 'made_up', reason: '', attempts: 1, diedAt: NOW, seq: 1 };
  store.addDeadLetter({ sink: 'slow', ...about }, { records: encodeRecords([{ event }]) });
  const full = vi.spyOn(store.setAside, 'remove').mockImplementationOnce(() => {
    throw Object.assign(new Error('made-up'), { code: 'SQLITE_FULL' });
  });
  expect(() => store.retryDeadLetters({}, NOW)).toThrow('made-up');
  full.mockRestore();
  expect(store.retryDeadLetters({}, NOW)).toEqual({ count: 0, lastSeq: 2 });
  expect(allIn(store).map(({ id }) => id)).toEqual(['a', 'a']);
  expect(store.status(NOW).deadLetters).toBe(0);
});

test('what a sink refuses again after a kill is one dead letter for each target', async () => {
  const path = await temporaryFolder();
  const store = openStore(path);
  store.cursors.open('hubs');
  append(store, 'a', 'b');
  const all = [
    [1, 'events'],
    [1, null],
    [2, null],
  ] as const;
  for (const [seq, destination] of all) refuse(store, seq, destination);
  const again = openStore(await killed(path));
  for (const [seq, destination] of all) refuse(again, seq, destination);
  expect(again.setAside.list({}, false).about.map((one) => [one.seq, one.destination])).toEqual(all);
});

test('a segment that has lost its end is named, and what comes after it is kept', async () => {
  const path = await temporaryFolder();
  const store = openStore(path);
  for (const id of ['a', 'b', 'c']) append(store, id);
  store.close();
  const [segment = ''] = segmentsOf(path);
  truncateSync(segment, statSync(segment).size - 150);
  const short = openStore(path);
  expect(short.read(0, { count: 9, bytes: 1e6 }, NOW).damaged).toEqual([{ seq: 3, id: null }]);
  expect(append(short, 'd')).toEqual([4]);
  const again = openStore(await killed(path));
  const seen: string[] = [];
  for (const { id, seq } of allIn(again)) seen.push(`${seq}${id}`);
  expect(seen).toEqual(['1a', '2b', '3', '4d']);
  expect(again.status(NOW)).toMatchObject({ damaged: 1, lastSeq: 4 });
  expect(append(again, 'e')).toEqual([5]);
});

test('what can be made again is not synced, and what comes after it is', async () => {
  const db = openDatabase({ path: await temporaryFolder(), create: true }).db;
  const transactions = new Transactions(db);
  const level = (): unknown => db.pragma('synchronous', { simple: true });
  expect(transactions.unsynced(() => [transactions.run(level), transactions.run(level)])).toEqual([1, 1]);
  expect(transactions.run(level)).toBe(2);
  expect(() =>
    transactions.unsynced(() => {
      throw new Error('made-up');
    }),
  ).toThrow('made-up');
  expect(level()).toBe(2);
  db.close();
});

test('a power cut that takes back what upkeep has written takes no count and no id', async () => {
  const path = await temporaryFolder();
  const store = openStore(path, { retention: 1e6 });
  append(store, 'a', 'b');
  store.append(batchOf(named('q'), '[]'), NOW);
  // Until the next sync the database may become what it is now.
  const synced = await killed(path);
  append(store, 'a', 'c');
  store.maintain(NOW);
  append(store, 'd', 'c');
  const cut = await killed(path);
  for (const name of databaseIn(cut)) rmSync(join(cut, name));
  for (const name of databaseIn(synced)) cpSync(join(synced, name), join(cut, name));
  const again = openStore(cut);
  expect(countsOf(again)).toEqual({ accepted: 4, duplicates: 2, quarantined: 1 });
  expect(again.account(0, 2 * NOW).countedSince).toBe(Math.floor(NOW / 3_600_000) * 3_600_000);
  expect(append(again, 'a', 'b', 'c', 'd', 'e')).toEqual([0, 0, 0, 0, 5]);
});
