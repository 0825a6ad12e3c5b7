import fc from 'fast-check';
import { expect, it } from 'vitest';
import { chainOf, chainPrefix, parseSegmentKey, segmentKey } from '../../src/archive/segments.ts';

const writer = '0123456789ab';
const of = (first: number, last: number) => ({ writer, first, last });

it('names a segment by its writer and its lines', () => {
  const key = segmentKey({ writer, first: 1, last: 1000 });
  expect(key).toBe('_manifest/0123456789ab/0000000001-0000001000.jsonl');
  expect(key.startsWith(chainPrefix(writer))).toBe(true);
  expect(parseSegmentKey(key)).toEqual({ writer, first: 1, last: 1000 });
});

it.each([
  '_manifest.jsonl',
  '_manifest/0123456789ab/1-2.jsonl',
  '_manifest/0123456789ab/0000000000-0000000001.jsonl',
  '_manifest/0123456789ab/0000000002-0000000001.jsonl',
  '_manifest/0123456789AB/0000000001-0000000001.jsonl',
  '_manifest/../0000000001-0000000001.jsonl',
  'x/_manifest/0123456789ab/0000000001-0000000001.jsonl',
  '_manifest/0123456789ab/0000000001-0000000001.jsonl.gz',
])('takes %s for no segment', (key) => expect(parseSegmentKey(key)).toBeNull());

/** Lines cut into segments, and some of these also in larger ones, as a compaction leaves them. */
const compacted = fc
  .tuple(
    fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 12 }),
    fc.infiniteStream(fc.nat(3)),
  )
  .map(([sizes, joins]) => {
    const small: { first: number; last: number }[] = [];
    for (const size of sizes) {
      const first = (small.at(-1)?.last ?? 0) + 1;
      small.push({ first, last: first + size - 1 });
    }
    const large: { first: number; last: number }[] = [];
    const left: { first: number; last: number }[] = [];
    for (let at = 0; at < small.length;) {
      const join = Math.min(1 + (joins.next().value ?? 0), small.length - at);
      const joined = small.slice(at, at + join);
      if (join > 1) large.push({ first: joined[0]?.first ?? 0, last: joined.at(-1)?.last ?? 0 });
      // Those are deleted one after the other; a lone one is in nothing else.
      left.push(...(join > 1 ? joined.slice(joins.next().value ?? 0) : joined));
      at += join;
    }
    return [...large, ...left].map((each) => ({ writer, ...each }));
  });

it('finds each line once, whatever of a compaction has been done', () => {
  fc.assert(
    fc.property(compacted, fc.nat(), (segments, seed) => {
      const shuffled = segments
        .map((segment, at) => ({ segment, by: ((at + 1) * (seed + 7919)) % 104729 }))
        .toSorted((one, other) => one.by - other.by)
        .map(({ segment }) => segment);
      const { chain, contained, gaps } = chainOf(shuffled);
      expect(gaps).toEqual([]);
      expect(chain.length + contained.length).toBe(segments.length);
      let next = 1;
      for (const { first, last } of chain) {
        expect(first).toBe(next);
        next = last + 1;
      }
      expect(next - 1).toBe(Math.max(...segments.map(({ last }) => last)));
    }),
  );
});

it('names where lines are missing, or lie in two that do not contain each other', () => {
  expect(chainOf([of(2, 3)]).gaps).toEqual([{ after: 0, before: of(2, 3) }]);
  expect(chainOf([of(1, 3), of(5, 5)]).gaps).toEqual([{ after: 3, before: of(5, 5) }]);
  expect(chainOf([of(1, 3), of(3, 5)]).gaps).toEqual([{ after: 3, before: of(3, 5) }]);
});
