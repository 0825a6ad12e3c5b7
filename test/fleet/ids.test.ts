import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fingerprintOf, IdTable, RecentIds, recentPrint } from '../../src/journal/kafka/id-table.ts';
import { assign } from '../../src/journal/kafka/membership.ts';
import { idsOf, RELEASED } from '../../src/journal/kafka/window.ts';
import { eventOf } from '../privacy/erase/support.ts';

const WINDOW = 100;
const at = (id: number, body = 0) => fingerprintOf('webhooks', `msg_${id}`, Buffer.from([body]));

/** What tells the bytes of one body, released from quarantine, that came with this id. */
function ofBytes(id: string): Buffer[] {
  const event = eventOf(1, 1, { id });
  const recorded = { event, dedupKey: id, again: `${RELEASED} 17` };
  return idsOf(recorded, { offset: 0, time: 0 }).map(({ print }) => print.subarray(12));
}

describe('ids of a partition', () => {
  test('the first record with an id is the event, whatever has been noted before, and however often', () => {
    const record = fc.record({ id: fc.nat(20), body: fc.nat(1), second: fc.nat(60) });
    fc.assert(
      fc.property(fc.array(record, { maxLength: 60 }), fc.array(fc.nat(59)), (records, restarts) => {
        const ids = new IdTable(WINDOW);
        const run = (from: number): string[] =>
          records.slice(from).map(({ id, body, second }, n) => ids.note(at(id, body), second, from + n));
        const verdicts = run(0);
        for (const [n, { id, body }] of records.entries()) {
          const first = records.findIndex((each) => each.id === id);
          const expected = first === n ? 'first' : records[first]?.body === body ? 'duplicate' : 'reused';
          expect(verdicts[n]).toBe(expected);
        }
        // Read again from anywhere.
        for (const from of restarts) expect(run(from)).toEqual(verdicts.slice(from));
      }),
    );
  });

  test('what tells bytes, also of what a person retries, is another for each id: a guess of a body alone tells nothing', () => {
    const [one = [], other = [], again] = ['msg_one', 'msg_other', 'msg_one'].map(ofBytes);
    expect(again).toEqual(one);
    expect(new Set([...one, ...other].map((digest) => digest.toString('hex'))).size).toBe(4);
  });

  test('past the window an id is new', () => {
    const ids = new IdTable(WINDOW);
    expect(ids.note(at(1), 0, 0)).toBe('first');
    expect(ids.note(at(1), 100, 1)).toBe('duplicate');
    expect(ids.note(at(1), 101, 2)).toBe('first');
    expect(ids.note(at(1), 150, 3)).toBe('duplicate');
  });

  test('hold a hundred thousand, and forget those past the window when they need room', () => {
    const ids = new IdTable(WINDOW);
    const verdicts = new Set<string>();
    for (let n = 0; n < 100_000; n += 1) verdicts.add(ids.note(at(n), Math.floor(n / 100), n));
    expect([...verdicts]).toEqual(['first']);
    expect(ids.size).toBeLessThan(60_000);
    verdicts.clear();
    for (let n = 95_000; n < 100_000; n += 1) verdicts.add(ids.note(at(n), 1000, 100_000 + n));
    expect([...verdicts]).toEqual(['duplicate']);
  });
});

test('partitions are shared out evenly, and stay where they were', () => {
  const owned = fc.uniqueArray(fc.nat(15), { maxLength: 16 });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 16 }),
      fc.array(owned, { minLength: 1, maxLength: 6 }),
      (partitions, all) => {
        const members = all.map((own, n) => ({ id: `m${n}`, owned: own }));
        const shares = assign(partitions, members);
        const sizes = [...shares.values()].map(({ length }) => length);
        expect([...shares.values()].flat().toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: partitions }, (_, n) => n),
        );
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
      },
    ),
  );
  const members = [
    { id: 'a', owned: [0, 1, 2] },
    { id: 'b', owned: [] },
  ];
  expect(assign(3, members).get('a')).toEqual([0, 1]);
});

const of = (kind: string, source: string, key: string, body: string): Buffer =>
  recentPrint(kind, source, key, Buffer.from(body));

const NAMES = Array.from({ length: 1000 }, (_, n) => of('accepted', 'a', String(n), 'x'));
const NEVER = of('accepted', 'a', 'never', 'x');
const named = (n: number): Buffer => NAMES[n] ?? NEVER;

test('what was confirmed of late is known, and no more than two generations of it', () => {
  const recent = new RecentIds(100);
  const wrong: string[] = [];
  for (let n = 0; n < 1000; n += 1) {
    recent.add(named(n));
    for (let back = 0; back < 100 && back <= n; back += 1)
      if (!recent.has(named(n - back))) wrong.push(`${n - back} is forgotten after ${n}`);
    if (recent.has(named(n - 200))) wrong.push(`${n - 200} is known after ${n}`);
  }
  expect(wrong).toEqual([]);
});

test('other bytes, another source or another kind are another name', () => {
  const names = [
    of('accepted', 'a', 'bc', 'x'),
    of('accepted', 'ab', 'c', 'x'),
    of('accepted', 'a', 'bc', 'y'),
    of('quarantined', 'a', 'bc', 'x'),
  ];
  expect(new Set(names.map((name) => name.toString('hex'))).size).toBe(names.length);
  expect(of('accepted', 'a', 'bc', 'x')).toEqual(names[0]);
});
