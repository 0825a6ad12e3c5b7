import { appendFileSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Event } from '../../src/core/event.ts';
import type { SearchQuery } from '../../src/core/search.ts';
import type { EraseStep } from '../../src/journal/erase.ts';
import { readRange, SearchIndex } from '../../src/journal/search/search-index.ts';
import { JournalSearch } from '../../src/journal/search/search.ts';
import { encodeRecords, rowAt } from '../../src/journal/segments/records.ts';
import type { Store } from '../../src/journal/store.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/until.ts';
import { batchOf, NOW, openStore } from './support.ts';

const TYPES = ['daily.data.meal.created', 'daily.data.sleep.created', 'labtest.order.updated', 'daily.', ''];
const ALL: SearchQuery = { limit: 1_000_000 };
/** Some segments of 64 KB. */
const SMALL = { maxBytes: 1_000_000, retention: 0 };

const eventOf = (n: number): Event =>
  makeEvent({
    id: `msg_${n}`,
    type: TYPES[n % TYPES.length] ?? '',
    user: n % 7 === 0 ? null : `user-${n % 31}`,
    clientUser: `client-${n % 13}`,
    receivedAt: NOW + n * 700,
    body: Buffer.alloc(n % 300, 'b'),
  });

/** Appends events in commits of several. @returns them, by seq */
function fill(store: Store, from: number, count: number): Map<number, Event> {
  const added = new Map<number, Event>();
  for (let n = from; n < from + count; n += 47) {
    const batch = Array.from({ length: Math.min(47, from + count - n) }, (_, k) => eventOf(n + k));
    const seqs = store.append(batchOf(batch), NOW).answers;
    for (const [index, seq] of seqs.entries()) added.set(seq, batch[index] as Event);
  }
  return added;
}

function indexOf(folder: string): SearchIndex {
  const index = new SearchIndex(folder);
  onTestFinished(() => index.close());
  return index;
}

/** Reads as the other thread does, a chunk at a time, each handed over. */
function build(index: SearchIndex, folder: string, { firstSeq, lastSeq }: Span): void {
  index.update(firstSeq, lastSeq);
  for (let next = index.next(); next !== null; next = index.next()) {
    const read = readRange(folder, next);
    index.add(structuredClone(read, { transfer: [read.chunk.buffer] }));
  }
}

type Span = { readonly firstSeq: number; readonly lastSeq: number };

/** Newest first, as anyone would look through them. */
function expected(events: ReadonlyMap<number, Event>, query: SearchQuery): number[] {
  const {
    id,
    user,
    type = '',
    since = 0,
    until: end = Infinity,
    after = 0,
    before = Infinity,
    limit,
  } = query;
  return [...events]
    .filter(([seq, event]) => {
      if (id !== undefined && event.id !== id) return false;
      if (user !== undefined && event.user !== user && event.clientUser !== user) return false;
      const inTime = event.receivedAt >= since && event.receivedAt < end;
      return event.type.startsWith(type) && inTime && seq > after && seq < before;
    })
    .map(([seq]) => seq)
    .toReversed()
    .slice(0, limit);
}

const QUERIES: readonly SearchQuery[] = [
  ALL,
  { limit: 10 },
  { ...ALL, id: 'msg_17' },
  { ...ALL, id: 'msg_' },
  { ...ALL, user: 'user-3' },
  { ...ALL, user: 'client-5' },
  { ...ALL, user: 'user-3', type: 'daily.' },
  { ...ALL, type: 'daily.data.s' },
  { ...ALL, type: 'nothing' },
  { ...ALL, since: NOW + 70_123, until: NOW + 700_000 },
  { limit: 7, before: 300, user: 'user-4' },
  { ...ALL, after: 600, before: 605 },
];

const seqsOf = (index: SearchIndex, query: SearchQuery): number[] =>
  index.find(query).events.map(({ seq }) => seq);

test('it finds what looking through all of them finds, over many segments, and as they come', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder, SMALL);
  const index = indexOf(folder);
  const events = fill(store, 0, 500);
  for (const more of [0, 1, 150]) {
    for (const [seq, event] of fill(store, events.size, more)) events.set(seq, event);
    // The last of them are read by who looks for them.
    index.follow(1, events.size, Infinity);
    build(index, folder, store.status(NOW));
    expect(index.isComplete).toBe(true);
    for (const query of QUERIES)
      expect([query, seqsOf(index, query)]).toEqual([query, expected(events, query)]);
  }
  expect(readdirSync(folder).filter((name) => name.endsWith('.seg')).length).toBeGreaterThan(3);
  const { events: [found], searched, of } = index.find({ ...ALL, id: 'msg_17', journaled: true }); // prettier-ignore
  expect([searched, of]).toEqual([events.size, events.size]);
  const { headers: _headers, body, ...envelope } = eventOf(17);
  expect(found).toEqual({ ...envelope, seq: 18, bytes: body.length, journaledAt: NOW });
});

test('an index of several chunks in one segment, handed over between threads, finds the same', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder);
  const events = new Map<number, Event>();
  const user = 'one who has nearly all';
  for (let n = 0; n < 36_000; n += 1000) {
    const batch = Array.from({ length: 1000 }, (_, k) => {
      const { clientUser, ...event } = eventOf(n + k);
      return {
        ...event,
        user: k % 50 === 0 ? user : event.user,
        clientUser: k % 25 === 0 ? user : clientUser,
      };
    });
    const seqs = store.append(batchOf(batch), NOW).answers;
    for (const [index, seq] of seqs.entries()) events.set(seq, batch[index] as Event);
  }
  const index = indexOf(folder);
  index.follow(1, 10_000, Infinity);
  build(index, folder, store.status(NOW));
  const { firstSeq, lastSeq } = store.status(NOW);
  expect([firstSeq, lastSeq, index.isComplete]).toEqual([1, 36_000, true]);
  const queries: readonly SearchQuery[] = [
    { ...ALL, id: 'msg_32768' },
    { ...ALL, user },
    { limit: 60, user, before: 32_900, type: 'daily.' },
    { ...ALL, since: NOW + 32_700 * 700, until: NOW + 32_800 * 700 },
    { limit: 9, after: 32_765, before: 32_772 },
    { limit: 3, type: 'nothing' },
  ];
  for (const query of queries)
    expect([query, seqsOf(index, query)]).toEqual([query, expected(events, query)]);
  const [late] = index.find({ limit: 1, id: 'msg_35999', journaled: true }).events;
  expect(late).toMatchObject({ seq: 36_000, journaledAt: NOW });
});

test('what is set aside is found newest first, by any user and however the id is written', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder);
  const { setAside } = store;
  const id = '00000000-0000-4000-8000-00000000abcd';
  const events = Array.from({ length: 60 }, (_, n) => {
    const event = eventOf(n);
    return n % 9 === 0 ? { ...event, user: n % 2 === 0 ? id : `{${id.toUpperCase()}}` } : event;
  });
  for (const event of events) {
    const records = encodeRecords([{ event }]);
    store.addDeadLetter({ ...ABOUT, seq: 0 }, { records });
    setAside.quarantine('[]', rowAt(Buffer.from(records), 0), event.body);
  }
  const byKey = new Map(events.map((event, n) => [n + 1, event]));
  for (const query of [...QUERIES, { limit: 3, user: id }, { ...ALL, before: 50, after: 20, user: id }]) {
    const wanted =
      query.user === id
        ? [55, 46, 37, 28, 19, 10, 1]
            .filter((key) => key < (query.before ?? 99) && key > (query.after ?? 0))
            .slice(0, query.limit)
        : expected(byKey, query);
    const deadLetters = setAside.list({ newestOf: query }, false).about;
    expect([query, deadLetters.map(({ key }) => key)]).toEqual([query, wanted]);
    const quarantined = setAside.listQuarantine({ newestOf: query }, true).about;
    expect([query, quarantined.map(({ key }) => key)]).toEqual([query, wanted]);
  }
});

const ABOUT = { sink: 's', destination: null, code: 'c', reason: 'r', attempts: 1, diedAt: NOW };

test('the newest are there first, and the answer says of how many it is', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder, SMALL);
  const events = fill(store, 0, 700);
  const index = indexOf(folder);
  const { firstSeq, lastSeq } = store.status(NOW);
  index.follow(firstSeq, lastSeq, 0);
  const { events: found, searched, of } = index.find(ALL);
  expect(of).toBe(events.size);
  expect(found).toHaveLength(searched);
  expect(searched).toBeGreaterThan(0);
  expect(searched).toBeLessThan(of);
  const oldest = Math.min(...found.map(({ seq }) => seq));
  expect(oldest).toBeGreaterThan(of / 2);
  build(index, folder, { firstSeq, lastSeq });
  expect(index.isComplete).toBe(true);
  expect(seqsOf(index, ALL)).toEqual(expected(events, ALL));
});

test('a user is found however the UUID is written, in the event and in the question', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder, SMALL);
  const id = '00000000-0000-4000-8000-00000000abcd';
  const spelt = [id, id.toUpperCase(), `00000000-0000-4000-8000-00000000abce`];
  const events = spelt.map((user, n) => ({ ...eventOf(n), user }));
  const seqs = store.append(batchOf(events), NOW).answers;
  const index = indexOf(folder);
  build(index, folder, store.status(NOW));
  for (const user of [id, id.toUpperCase()])
    expect(seqsOf(index, { ...ALL, user })).toEqual([seqs[1], seqs[0]]);
});

test('what was removed with its segment, or erased, is found no more', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder, SMALL);
  const events = fill(store, 0, 700);
  const index = indexOf(folder);
  build(index, folder, store.status(NOW));
  store.cursors.open('made-up');
  store.cursors.move([['made-up', 400]]);
  while (store.maintain(NOW + 10 ** 9));
  const { firstSeq } = store.status(NOW);
  expect(firstSeq).toBeGreaterThan(100);
  for (const seq of events.keys()) if (seq < firstSeq) events.delete(seq);
  build(index, folder, store.status(NOW));
  expect(seqsOf(index, { ...ALL, user: 'user-3' })).toEqual(expected(events, { ...ALL, user: 'user-3' }));
  expect(index.find({ ...ALL, id: 'msg_0' }).events).toEqual([]);

  const subjects = [{ request: 'r', by: 'user', id: 'user-3', team: null }] as const;
  for (let step: EraseStep | null = { do: 'setAside' }; step !== null;)
    step = store.eraser.perform(subjects, step);
  for (const [seq, { user }] of events) if (user === 'user-3') events.delete(seq);
  for (const fresh of [index, indexOf(folder)]) {
    build(fresh, folder, store.status(NOW));
    expect(seqsOf(fresh, { ...ALL, user: 'user-3' })).toEqual([]);
    expect(seqsOf(fresh, ALL)).toEqual(expected(events, ALL));
  }
});

test('what is being written, and what a crash has left behind the last commit, is none', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder, SMALL);
  const events = fill(store, 0, 100);
  const last = readdirSync(folder).findLast((name) => name.endsWith('.seg')) ?? '';
  appendFileSync(join(folder, last), Buffer.alloc(4096, 0xf7));
  const index = indexOf(folder);
  build(index, folder, store.status(NOW));
  expect(seqsOf(index, ALL)).toEqual(expected(events, ALL));
  // What is not committed yet is not found, even where it lies there already.
  index.follow(1, 40, Infinity);
  expect(seqsOf(index, { limit: 1 })).toEqual([40]);
});

/** The newest segment of a journal with events in it, and its bytes. */
function newestOf(folder: string): readonly [file: string, bytes: Buffer] {
  const name = readdirSync(folder).findLast((one) => one.endsWith('.seg')) ?? '';
  return [join(folder, name), readFileSync(join(folder, name))];
}

test('a segment that is shorter than what is committed is an error with its name, and not the end', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder);
  fill(store, 0, 470);
  const [file, bytes] = newestOf(folder);
  for (const part of [0.999, 0.9, 0.5, 0.3]) {
    truncateSync(file, Math.floor(bytes.length * part));
    expect(() => build(indexOf(folder), folder, store.status(NOW))).toThrow(`${file} ends before event`);
    expect(() => indexOf(folder).follow(1, 470, Infinity)).toThrow(`${file} ends before event`);
  }
  const search = new JournalSearch(folder, () => Promise.resolve(store.status(NOW)));
  onTestFinished(() => search.close());
  await expect(search.find(ALL)).rejects.toThrow('ends before event');
  // Back whole, it is searched.
  writeFileSync(file, bytes);
  const again = indexOf(folder);
  build(again, folder, store.status(NOW));
  expect(again.find(ALL).events).toHaveLength(470);
});

test('damaged events at the end are not found, and are no short segment', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder);
  const events = fill(store, 0, 470);
  const [file, bytes] = newestOf(folder);
  writeFileSync(file, Buffer.from(bytes).fill(0xa5, bytes.length - 600));
  const index = indexOf(folder);
  build(index, folder, store.status(NOW));
  const found = seqsOf(index, ALL);
  expect(found.length).toBeLessThan(events.size);
  expect(found).toEqual(expected(events, ALL).filter((seq) => seq <= (found[0] ?? 0)));
});

test('a segment with a damaged header is searched, as the journal serves it', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder, SMALL);
  const events = fill(store, 0, 500);
  const [first = '', ...others] = readdirSync(folder).filter((name) => name.endsWith('.seg'));
  expect(others.length).toBeGreaterThan(1);
  const bytes = readFileSync(join(folder, first));
  writeFileSync(join(folder, first), Buffer.from(bytes).fill(0xa5, 0, 8));
  const index = indexOf(folder);
  build(index, folder, store.status(NOW));
  expect(seqsOf(index, ALL)).toEqual(expected(events, ALL));
});

test('the thread begins with the first search, follows the journal, and can be ended at any time', async () => {
  const folder = await temporaryFolder();
  const store = openStore(folder, SMALL);
  const events = fill(store, 0, 500);
  const search = new JournalSearch(folder, () => Promise.resolve(store.status(NOW)));
  onTestFinished(() => search.close());
  const find = async (): Promise<number[]> => (await search.find(ALL)).events.map(({ seq }) => seq);
  await until('all of them', async () => (await find()).length === events.size);
  for (const [seq, event] of fill(store, 500, 50)) events.set(seq, event);
  expect(await find()).toEqual(expected(events, ALL));
  const late = search.find(ALL).then(
    () => 'found',
    () => 'ended',
  );
  await search.close();
  expect(['found', 'ended']).toContain(await late);
  await expect(search.find(ALL)).rejects.toThrow('ended');
});
