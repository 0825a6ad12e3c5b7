import { createHash } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/journal/database.ts';
import { SeenIds, type Identity, type Seen } from '../../src/journal/dedup.ts';
import { BloomFilter } from '../../src/lib/bloom.ts';
import { temporaryFolder } from '../support/folders.ts';

const WEEK = 7 * 86_400_000;
const named = (id: string): Identity => ({ source: 'webhooks', id, body: Buffer.from(`body of ${id}`) });

const hashOf = (id: string): Buffer => createHash('sha256').update(id).digest().subarray(0, 16);

function commit<T>(db: Database.Database, seen: SeenIds, work: () => T): T {
  db.exec('BEGIN');
  const value = work();
  db.exec('COMMIT');
  seen.committed();
  return value;
}

test('ids are found in every state of a generation, across reloads, and after rollbacks', async () => {
  const db = openDatabase(await temporaryFolder(), true);
  let seen = new SeenIds(db, WEEK, 500);
  for (let batch = 0; batch < 60; batch += 1) {
    const ids = Array.from({ length: 50 }, (_, index) => `id-${batch * 50 + index}`);
    db.exec('BEGIN');
    for (const id of ids) expect(seen.add(named(id), batch)).toBe('new');
    seen.advance(50);
    if (batch % 7 === 3) {
      db.exec('ROLLBACK');
      seen.rolledBack();
      commit(db, seen, () => {
        for (const id of ids) expect(seen.add(named(id), batch)).toBe('new');
        seen.advance(50);
      });
    } else {
      db.exec('COMMIT');
      seen.committed();
    }
    if (batch % 11 === 5) seen = new SeenIds(db, WEEK, 500);
  }
  commit(db, seen, () => {
    for (let n = 0; n < 3000; n += 1) expect(seen.add(named(`id-${n}`), 99), `id-${n}`).toBe('repeated');
  });
  expect(Number(db.prepare('SELECT count(*) FROM generations').pluck().get())).toBeGreaterThan(3);
  while (commit(db, seen, () => seen.expire(WEEK + 1000)));
  expect(db.prepare('SELECT count(*) FROM sealed_ids').pluck().get()).toBe(0);
  commit(db, seen, () => expect(seen.add(named('id-0'), WEEK + 1000)).toBe('new'));
  db.close();
});

test('what tells a repetition is source, id and bytes, within the window and no longer, in any state of a generation', async () => {
  const folder = await temporaryFolder();
  const window = 100;
  const step = fc.record({
    source: fc.constantFrom('a', 'ab'),
    id: fc.constantFrom('1', 'b1', 'x', 'y', 'z'),
    body: fc.constantFrom('one', 'two', 'three'),
    pass: fc.constantFrom(0, 0, 1, 30, 70, 150),
    next: fc.constantFrom('nothing', 'nothing', 'reopen', 'clear', 'roll back'),
  });
  let run = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const db = openDatabase(join(folder, String((run += 1))), true);
      let seen = new SeenIds(db, window, 4);
      // The oracle: a plain list of all that was ever remembered.
      const remembered: { source: string; id: string; body: string; at: number; first: boolean }[] = [];
      let now = 1000;
      for (const { source, id, body, pass, next } of steps) {
        now += pass;
        const young = remembered.filter(
          (one) => one.source === source && one.id === id && one.at >= now - window,
        );
        const first = young.findLast((one) => one.first);
        const expected =
          first === undefined ? 'new' : young.some((one) => one.body === body) ? 'repeated' : 'reused';
        const add = (): Seen => {
          const answer = seen.add({ source, id, body: Buffer.from(body) }, now);
          seen.advance(1);
          return answer;
        };
        if (next === 'roll back') {
          db.exec('BEGIN');
          add();
          db.exec('ROLLBACK');
          seen.rolledBack();
        }
        expect(commit(db, seen, add)).toBe(expected);
        if (expected !== 'repeated')
          remembered.push({ source, id, body, at: now, first: expected === 'new' });
        if (next === 'reopen') seen = new SeenIds(db, window, 4);
        if (next === 'clear') while (commit(db, seen, () => seen.expire(now)));
      }
      db.close();
    }),
    { numRuns: 60 },
  );
});

test('few ids a day are forgotten when their window is over, on disk too', async () => {
  const db = openDatabase(await temporaryFolder(), true);
  const seen = new SeenIds(db, 1000);
  commit(db, seen, () => expect(seen.add(named('once'), 0)).toBe('new'));
  commit(db, seen, () => expect(seen.add(named('once'), 1000)).toBe('repeated'));
  commit(db, seen, () => expect(seen.add(named('once'), 28_000)).toBe('new'));
  while (commit(db, seen, () => seen.expire(60_000)));
  expect(db.prepare('SELECT count(*) FROM recent_ids').pluck().get()).toBe(0);
  db.close();
});

test('ids of an older journal count as they did, until their window is over', async () => {
  const folder = await temporaryFolder();
  const old = new Database(join(folder, 'journal.db'));
  old.exec(`
    CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, upto INTEGER NOT NULL, crc INTEGER, id TEXT NOT NULL,
      source TEXT NOT NULL, type TEXT NOT NULL, team TEXT, user TEXT, client_user TEXT, received_at INTEGER NOT NULL,
      headers TEXT NOT NULL, handling TEXT, body BLOB NOT NULL);
    CREATE TABLE recent_ids (n INTEGER PRIMARY KEY, hash BLOB NOT NULL, at INTEGER NOT NULL);
    CREATE TABLE sealed_ids (generation INTEGER, hash BLOB, PRIMARY KEY (generation, hash)) WITHOUT ROWID;
    CREATE TABLE generations (
      generation INTEGER PRIMARY KEY, last_at INTEGER NOT NULL, ids INTEGER NOT NULL, filter BLOB NOT NULL);
    PRAGMA user_version = 2;`);
  old.prepare('INSERT INTO recent_ids VALUES (1, ?, 500)').run(hashOf('recent'));
  old.prepare('INSERT INTO sealed_ids VALUES (1, ?)').run(hashOf('sealed'));
  const filter = BloomFilter.sized(1);
  filter.add(hashOf('sealed').readUInt32LE(0), hashOf('sealed').readUInt32LE(4));
  old.prepare('INSERT INTO generations VALUES (1, 400, 1, ?)').run(filter.bytes);
  old.close();
  const db = openDatabase(folder, true);
  const seen = new SeenIds(db, 1000);
  commit(db, seen, () => {
    expect(seen.add(named('recent'), 1400)).toBe('repeated');
    expect(seen.add(named('sealed'), 1400)).toBe('repeated');
    expect(seen.add(named('other'), 1400)).toBe('new');
    expect(seen.add(named('sealed'), 1450)).toBe('new');
    expect(seen.add(named('recent'), 1600)).toBe('new');
  });
  db.close();
});

test('a Bloom filter never forgets a member and rarely claims a stranger', () => {
  const word = fc.integer({ min: 0, max: 0xffff_ffff });
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(word, word), { minLength: 1, maxLength: 500 }), (members) => {
      const filter = BloomFilter.sized(members.length);
      for (const [high, low] of members) filter.add(high, low);
      return members.every(([high, low]) => BloomFilter.from(filter.bytes).has(high, low));
    }),
  );
  const filter = BloomFilter.sized(10_000);
  for (let n = 0; n < 10_000; n += 1) filter.add(random(n), random(n + 1e6));
  let wrong = 0;
  for (let n = 20_000; n < 120_000; n += 1) if (filter.has(random(n), random(n + 1e6))) wrong += 1;
  expect(wrong).toBeLessThan(300);
});

function random(n: number): number {
  return Math.imul(n ^ (n >>> 15), 0x85ebca6b) >>> 0;
}
