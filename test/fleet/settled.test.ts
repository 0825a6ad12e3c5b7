import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeAhead, encodeAhead } from '../../src/journal/kafka/commit-text.ts';
import { isSettledIn, SettledOffsets, type Destination } from '../../src/journal/kafka/settled-offsets.ts';

/** Nine in ten are for none, one or two of these; a long name takes room. */
const PLACES: readonly Destination[] = [null, 'a', 'b "c"', 'd'.repeat(240), 'é'.repeat(60)];

/** One who has the partition for a while: reads some records, settles some deliveries of them, commits now and then. */
interface Owner {
  readonly reads: number;
  /** Of deliveries that are open, by their number among them; -1 commits. */
  readonly settles: readonly number[];
  /** Deliveries that are dead letters, by the record's number. */
  readonly died: readonly (readonly [number, Destination])[];
}

const records = (most: number): fc.Arbitrary<Destination[][]> =>
  fc.array(fc.subarray([...PLACES], { maxLength: 3 }), { maxLength: most, size: 'max' });
const owners = (most: number): fc.Arbitrary<Owner[]> =>
  fc.array(
    fc.record({
      reads: fc.nat(most),
      died: fc.array(fc.tuple(fc.nat(most), fc.constantFrom(...PLACES)), { maxLength: 5 }),
      settles: fc.array(fc.integer({ min: -1, max: 30 }), { maxLength: most, size: 'max' }),
    }),
    { maxLength: 6, size: 'max' },
  );

const name = (at: number, destination: Destination): string => `${at} ${destination}`;

/** Plays owners after each other. The oracle is a list of what was settled by the last commit, delivery by delivery. */
function play(log: readonly Destination[][], all: readonly Owner[], first: number): void {
  let committed = { offset: first, text: '', settled: new Set<string>() };
  for (const { reads, settles, died } of all) {
    const before = decodeAhead(committed.offset, committed.text);
    const settled = new SettledOffsets(before);
    expect(settled.checkpoint).toBeNull();
    const known = new Set(committed.settled);
    const open: [number, Destination][] = [];
    const end = Math.min(first + log.length, committed.offset + reads);
    const commit = (): void => {
      const { checkpoint } = settled;
      if (checkpoint === null) return;
      const text = encodeAhead(checkpoint);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4000);
      const least = Math.min(end, ...open.map(([at]) => at));
      expect(checkpoint.offset).toBe(least);
      committed = { offset: least, text, settled: new Set(known) };
    };
    for (let at = committed.offset; at < end; at += 1) {
      const due = log[at - first] ?? [];
      const dead = died.flatMap(([record, destination]) => (record === at - first ? [destination] : []));
      const still = settled.add(at, due, dead);
      for (const destination of dead) if (due.includes(destination)) known.add(name(at, destination));
      const wanted = due.filter((destination) => !known.has(name(at, destination)));
      expect(still).toEqual(wanted);
      expect(due.filter((each) => !isSettledIn(before, at, each) && !dead.includes(each))).toEqual(still);
      expect(settled.isOpen(at)).toBe(still.length > 0);
      for (const destination of still) open.push([at, destination]);
    }
    for (const each of settles) {
      const [one] = each === -1 ? [] : open.splice(each % Math.max(1, open.length), 1);
      if (one === undefined) commit();
      else {
        settled.settle(...one);
        known.add(name(...one));
      }
    }
    commit();
  }
}

test('what is settled ahead travels from owner to owner, however little each reads', () => {
  fc.assert(
    fc.property(records(40), owners(40), fc.nat(1e12), (log, all, at) => {
      expect.hasAssertions();
      play(log, all, at);
    }),
  );
});

test('what was written for another offset says nothing', () => {
  const settled = new SettledOffsets(decodeAhead(7, ''));
  for (const at of [7, 8, 9]) settled.add(at, ['a', 'b']);
  for (const at of [7, 8, 9]) settled.settle(at, 'a');
  const text = encodeAhead(settled.checkpoint ?? { offset: 0, ahead: new Map() });
  expect(isSettledIn(decodeAhead(7, text), 9, 'a')).toBe(true);
  expect(isSettledIn(decodeAhead(5, text), 5, 'a')).toBe(false);
});

test('of what has no room the beginning is kept, for each place, and the rest is sent again', () => {
  const settled = new SettledOffsets(decodeAhead(0, ''));
  const places = ['a', 'b', 'whole', 'x"'.repeat(40)];
  for (let at = 0; at < 3000; at += 1) settled.add(at, places);
  for (let at = 1; at < 3000; at += 1)
    for (const place of places) if (place === 'whole' || at % 2 === 1) settled.settle(at, place);
  const text = encodeAhead(settled.checkpoint ?? { offset: 0, ahead: new Map() });
  expect(text.length).toBeLessThanOrEqual(4000);
  expect(text.length).toBeGreaterThan(3800);
  const { ahead } = decodeAhead(0, text);
  expect(ahead.get('whole')).toEqual([{ from: 1, to: 3000 }]);
  for (const place of places.filter((each) => each !== 'whole')) {
    const some = ahead.get(place) ?? [];
    expect(some.length).toBeGreaterThan(200);
    expect(some).toEqual(some.map((_, n) => ({ from: 2 * n + 1, to: 2 * n + 2 })));
  }
});

test('what lies behind one that waits is a few words, for each place that has them', () => {
  const settled = new SettledOffsets(decodeAhead(7, ''));
  const places = Array.from({ length: 100 }, (_, n) => `projects/p/topics/t${n}`);
  settled.add(7, ['down', ...places]);
  for (let at = 8; at < 1000; at += 1) settled.add(at, ['down', ...places]);
  for (let at = 7; at < 1000; at += 1) for (const place of places) settled.settle(at, place);
  const checkpoint = settled.checkpoint ?? { offset: 0, ahead: new Map() };
  const read = decodeAhead(checkpoint.offset, encodeAhead(checkpoint));
  expect(read.offset).toBe(7);
  expect(new Set(read.ahead.keys())).toEqual(new Set(places));
  expect(read.ahead.get('projects/p/topics/t0')).toEqual([{ from: 7, to: 1000 }]);
});

test('what is erased is settled everywhere', () => {
  const settled = new SettledOffsets(decodeAhead(0, ''));
  settled.add(0, ['a', 'b']);
  settled.settleAll(0);
  expect(settled.isOpen(0)).toBe(false);
  expect(settled.checkpoint?.offset).toBe(1);
});

test.each(['of another program', 'done: 1 2', 'ahead: {', 'ahead: 5', 'ahead: [5,["a"],[3,"1"]]', ''])(
  'a text that says nothing of the kind says that nothing is: %s',
  (text) => {
    const { offset, ahead } = decodeAhead(5, text);
    expect([offset, [...ahead]]).toEqual([5, []]);
  },
);
