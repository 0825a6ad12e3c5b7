import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Checkpoints } from '../../src/journal/checkpoints.ts';
import { openDatabase } from '../../src/journal/database.ts';
import { SeenIds, type DedupResult } from '../../src/journal/dedup.ts';
import { possibleHashes, bodyHashOf, eventHashesOf } from '../../src/journal/identity.ts';
import { NO_ID, type EventHashes } from '../../src/journal/segments/format.ts';
import { identityOf } from '../../src/journal/segments/records.ts';
import { Transactions } from '../../src/journal/transactions.ts';
import { temporaryFolder } from '../support/folders.ts';

const WEEK = 7 * 86_400_000;
function named(id: string, source = 'webhooks', body = `body of ${id}`): EventHashes {
  return eventHashesOf(identityOf(source, id), bodyHashOf(Buffer.from(body)));
}

/** What stands in the records of the segments: all that was added with a seq. */
type Records = (readonly [id: EventHashes, seq: number, at: number])[];

interface Tables {
  readonly db: Database.Database;
  readonly transactions: Transactions;
  readonly checkpoints: Checkpoints;
}

function openTables(path: string): Tables {
  const { db } = openDatabase({ path, create: true });
  return { db, transactions: new Transactions(db), checkpoints: new Checkpoints(db) };
}

/** As after a restart: what the tables do not have is found in the records. */
function reopen(tables: Tables, window: number, size: number, records: Records): SeenIds {
  const seen = new SeenIds(tables, window, size);
  for (const [id, seq, at] of records) if (seq > seen.savedUpTo) seen.restore(id, seq, at);
  return seen;
}

test('ids are found in every state of a generation, across restarts, and after batches that failed', async () => {
  const tables = openTables(await temporaryFolder());
  const { db, transactions } = tables;
  const records: Records = [];
  let seen = new SeenIds(tables, WEEK, 500);
  for (let batch = 0; batch < 60; batch += 1) {
    const ids = Array.from({ length: 50 }, (_, index) => named(`id-${batch * 50 + index}`));
    const add = (): void => {
      for (const [index, id] of ids.entries())
        expect(seen.add(id, batch, batch * 50 + index + 1)).toBe('new');
    };
    add();
    if (batch % 7 === 3) {
      seen.takeBack();
      add();
    }
    for (const [index, id] of ids.entries()) records.push([id, batch * 50 + index + 1, batch]);
    seen.committed();
    transactions.run(() => seen.advance(300, records.length));
    // Their segments are removed before they are sealed.
    if (batch % 13 === 4) transactions.run(() => seen.keep(records.length - 70, batch));
    if (batch % 11 === 5) seen = reopen(tables, WEEK, 500, records);
  }
  for (let n = 0; n < 3000; n += 1) expect(seen.add(named(`id-${n}`), 99, 1e6), `id-${n}`).toBe('repeated');
  expect(Number(db.prepare('SELECT count(*) FROM generations').pluck().get())).toBeGreaterThan(3);
  while (transactions.run(() => seen.expire(WEEK + 1000)));
  expect(db.prepare('SELECT count(*) FROM sealed_ids').pluck().get()).toBe(0);
  expect(seen.add(named('id-0'), WEEK + 1000, 1e6)).toBe('new');
  db.close();
});

test('generations stay as large as they are meant to be when more ids come than a step of sealing has to write', async () => {
  const tables = openTables(await temporaryFolder());
  const { db, transactions } = tables;
  const seen = new SeenIds(tables, WEEK, 1000);
  let count = 0;
  for (let step = 0; step < 200; step += 1) {
    for (const upTo = count + 90; count < upTo; count += 1) seen.add(named(`id-${count}`), step, count + 1);
    seen.committed();
    transactions.run(() => seen.advance(50, count));
  }
  const sizes = db.prepare('SELECT count(*) FROM sealed_ids GROUP BY generation').pluck().all() as number[];
  expect(sizes.length).toBeGreaterThan(8);
  expect(Math.max(...sizes)).toBeLessThan(1300);
  db.close();
});

function hashesIn(db: Database.Database, table: string): Buffer[] {
  return db.prepare(`SELECT hash FROM ${table}`).pluck().all() as Buffer[];
}

/** The sealing of a generation is ended by a restart, and an id has come with other bytes when it is begun again. */
const GENERATION_BEGUN_TWICE = [
  { source: 'ab', id: 'y', body: 'two', pass: 0, next: 'nothing' },
  { source: 'ab', id: '1', body: 'one', pass: 0, next: 'nothing' },
  { source: 'a', id: '1', body: 'three', pass: 0, next: 'nothing' },
  { source: 'a', id: '1', body: 'one', pass: 0, next: 'nothing' },
  { source: 'a', id: '1', body: 'one', pass: 0, next: 'nothing' },
  { source: 'ab', id: 'y', body: 'one', pass: 150, next: 'reopen' },
  { source: 'a', id: '1', body: 'one', pass: 0, next: 'keep' },
  { source: 'ab', id: 'y', body: 'one', pass: 0, next: 'nothing' },
].map((step) => ({ ...step, isAside: false }));

test('what tells a repetition is source, id and bytes, within the window and no longer, in any state of a generation', async () => {
  const folder = await temporaryFolder();
  const window = 100;
  const step = fc.record({
    source: fc.constantFrom('a', 'ab'),
    id: fc.constantFrom('1', 'b1', 'x', 'y', 'z'),
    body: fc.constantFrom('one', 'two', 'three'),
    pass: fc.constantFrom(0, 0, 1, 30, 70, 150),
    isAside: fc.boolean(),
    next: fc.constantFrom('nothing', 'nothing', 'reopen', 'clear', 'roll back', 'keep', 'forget'),
  });
  let run = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const tables = openTables(join(folder, String((run += 1))));
      const { db, transactions } = tables;
      let seen = new SeenIds(tables, window, 4);
      const records: Records = [];
      // The oracle: a plain list of all that was ever remembered.
      let remembered: { source: string; id: string; body: string | null; at: number; first: boolean }[] = [];
      let now = 1000;
      for (const { source, id, body, pass, next, isAside } of steps) {
        now += pass;
        const young = remembered.filter(
          (one) => one.source === source && one.id === id && one.at >= now - window,
        );
        const first = young.findLast((one) => one.first);
        const expected: DedupResult =
          first === undefined ? 'new' : young.some((one) => one.body === body) ? 'repeated' : 'reused';
        const seq = isAside ? 0 : records.length + 1;
        const identity = named(id, source, body);
        if (next === 'roll back') {
          seen.add(identity, now, seq);
          seen.takeBack();
        }
        expect(seen.add(identity, now, seq)).toBe(expected);
        if (expected === 'new' && !isAside) records.push([identity, seq, now]);
        transactions.run(() => seen.saveAside());
        seen.committed();
        transactions.run(() => seen.advance(1, records.length));
        if (expected !== 'repeated')
          remembered.push({ source, id, body, at: now, first: expected === 'new' });
        if (next === 'reopen') seen = reopen(tables, window, 4, records);
        if (next === 'clear') while (transactions.run(() => seen.expire(now)));
        if (next === 'keep') transactions.run(() => seen.keep(records.length, now));
        if (next !== 'forget') continue;
        transactions.run(() => seen.forget([identity]));
        const isIt = (one: (typeof remembered)[number]): boolean =>
          one.source === source && one.id === id && one.body === body;
        remembered = remembered
          .filter((one) => one.first || !isIt(one))
          .map((one) => (isIt(one) ? { ...one, body: null } : one));
        for (const [n, [known, ...rest]] of records.entries())
          if (known.key === identity.key && known.digest === identity.digest)
            records[n] = [{ ...known, digest: NO_ID.digest }, ...rest];
        const digest = Buffer.from(identity.digest, 'latin1');
        for (const table of ['recent_ids', 'sealed_ids'])
          expect(hashesIn(db, table).filter((row) => row.includes(digest))).toEqual([]);
      }
      db.close();
    }),
    { numRuns: 100, examples: [[GENERATION_BEGUN_TWICE]] },
  );
});

test('few ids a day are forgotten when their window is over, on disk too', async () => {
  const tables = openTables(await temporaryFolder());
  const { db, transactions } = tables;
  const seen = new SeenIds(tables, 1000, 65_536);
  const add = (now: number): DedupResult => {
    const answer = seen.add(named('once'), now, 0);
    transactions.run(() => seen.saveAside());
    return answer;
  };
  expect([add(0), add(1000), add(28_000)]).toEqual(['new', 'repeated', 'new']);
  while (transactions.run(() => seen.expire(60_000)));
  expect(db.prepare('SELECT count(*) FROM recent_ids').pluck().get()).toBe(0);
  db.close();
});

test('what is forgotten has no digest in any state of a generation, and its id is known', async () => {
  const tables = openTables(await temporaryFolder());
  const { db, transactions } = tables;
  const seen = new SeenIds(tables, WEEK, 8);
  const ids = Array.from({ length: 20 }, (_, n) => `id-${n}`);
  for (const [n, id] of ids.entries()) {
    expect(seen.add(named(id), n, 0)).toBe('new');
    transactions.run(() => seen.saveAside());
    seen.committed();
    // Of the second generation a part is written, and the rest is not full.
    if (n < 19) transactions.run(() => seen.advance(1, 0));
  }
  // As a source of the service's pipelines has it.
  const message = named(JSON.stringify(['webhooks', null, 'x', 'id-19']), 'webhooks', 'body of id-19');
  expect(seen.add(message, 20, 0)).toBe('new');
  transactions.run(() => seen.saveAside());
  expect([hashesIn(db, 'sealed_ids').length > 8, hashesIn(db, 'recent_ids').length > 0]).toEqual([
    true,
    true,
  ]);
  const known = ids
    .slice(4)
    .map((id) => ({ id, bodyHash: bodyHashOf(Buffer.from(`body of ${id}`)) }))
    .flatMap((one) => possibleHashes({ ...one, source: 'webhooks', user: null, type: 'x' }));
  transactions.run(() => seen.forget(known));
  const whole = [...hashesIn(db, 'sealed_ids'), ...hashesIn(db, 'recent_ids')].filter(
    ({ length }) => length > 12,
  );
  expect(new Set(whole.map(String)).size).toBe(4);
  for (const id of ids.slice(0, 4)) expect(seen.add(named(id), 99, 0)).toBe('repeated');
  for (const id of [...ids.slice(4).map((each) => named(each)), message])
    expect(seen.add(id, 99, 0)).toBe('reused');
  db.close();
});
