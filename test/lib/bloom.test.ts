import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BloomFilter, BloomFilters } from '../../src/lib/bloom.ts';

/** One filter to be asked. */
function asked(filter: BloomFilter): (high: number, low: number) => boolean {
  const filters = new BloomFilters();
  filters.add(1, filter.bytes);
  return (high, low) => filters.having(high, low).length === 1;
}

test('a Bloom filter never forgets a member and rarely claims a stranger', () => {
  const word = fc.integer({ min: 0, max: 0xffff_ffff });
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(word, word), { minLength: 1, maxLength: 500 }), (members) => {
      const filter = new BloomFilter(members.length);
      for (const [high, low] of members) filter.add(high, low);
      const has = asked(filter);
      return members.every(([high, low]) => has(high, low));
    }),
  );
  const filter = new BloomFilter(10_000);
  for (let n = 0; n < 10_000; n += 1) filter.add(random(n), random(n + 1e6));
  const has = asked(filter);
  let wrong = 0;
  for (let n = 20_000; n < 120_000; n += 1) if (has(random(n), random(n + 1e6))) wrong += 1;
  expect(wrong).toBeLessThan(300);
});

test('filters that are asked together name all that have a member, and hardly any other, as they come and go', () => {
  const filters = new BloomFilters();
  const kept = new Set<number>();
  const sizes = [1000, 3000, 1000, 1000];
  // Of filter n: those from n * 10,000 on, and one that is in all.
  for (let n = 0; n < 150; n += 1) {
    const size = sizes[n % sizes.length] as number;
    const filter = new BloomFilter(size);
    for (let member = 0; member < size; member += 1)
      filter.add(random(n * 10_000 + member), random(n * 10_000 + member + 1e7));
    filter.add(5, 6);
    filters.add(n, filter.bytes);
    kept.add(n);
    if (n % 3 !== 2) continue;
    const gone = (n * 7) % (n + 1);
    filters.remove(gone);
    kept.delete(gone);
  }
  expect(filters.having(5, 6)).toEqual([...kept]);
  let [missing, wrong] = [0, 0];
  for (let n = 0; n < 150; n += 1)
    for (let member = 0; member < 1000; member += 1) {
      const named = filters.having(random(n * 10_000 + member), random(n * 10_000 + member + 1e7));
      if (kept.has(n) !== named.includes(n)) missing += 1;
      wrong += named.filter((name) => name !== n).length;
    }
  // A filter that is gone claims nothing.
  expect(missing).toBe(0);
  expect(wrong).toBeLessThan(150_000 * kept.size * 0.001);
  for (const n of kept) filters.remove(n);
  expect(filters.having(5, 6)).toEqual([]);
});

function random(n: number): number {
  let mixed = Math.imul(n ^ (n >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
