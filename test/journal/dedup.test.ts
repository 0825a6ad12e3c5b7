import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/journal/database.ts';
import { SeenIds } from '../../src/journal/dedup.ts';
import { BloomFilter } from '../../src/lib/bloom.ts';
import { temporaryFolder } from '../support/folders.ts';

function commit<T>(db: Database.Database, seen: SeenIds, work: () => T): T {
  db.exec('BEGIN');
  const value = work();
  db.exec('COMMIT');
  seen.committed();
  return value;
}

test('ids are found in every state of a generation, across reloads, and after rollbacks', async () => {
  const db = openDatabase(await temporaryFolder(), true);
  let seen = new SeenIds(db, 500);
  for (let batch = 0; batch < 60; batch += 1) {
    const ids = Array.from({ length: 50 }, (_, index) => `id-${batch * 50 + index}`);
    db.exec('BEGIN');
    for (const id of ids) expect(seen.add(id, batch)).toBe(true);
    seen.advance(50);
    if (batch % 7 === 3) {
      db.exec('ROLLBACK');
      seen.rolledBack();
      commit(db, seen, () => {
        for (const id of ids) expect(seen.add(id, batch)).toBe(true);
        seen.advance(50);
      });
    } else {
      db.exec('COMMIT');
      seen.committed();
    }
    if (batch % 11 === 5) seen = new SeenIds(db, 500);
  }
  commit(db, seen, () => {
    for (let n = 0; n < 3000; n += 1) expect(seen.add(`id-${n}`, 99), `id-${n}`).toBe(false);
  });
  expect(Number(db.prepare('SELECT count(*) FROM generations').pluck().get())).toBeGreaterThan(3);
  while (commit(db, seen, () => seen.expire(1000)));
  expect(db.prepare('SELECT count(*) FROM sealed_ids').pluck().get()).toBe(0);
  commit(db, seen, () => expect(seen.add('id-0', 100)).toBe(true));
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
