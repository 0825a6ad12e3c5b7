import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NumberSet } from '../../src/lib/number-set.ts';

const number = fc.oneof(fc.nat(300), fc.nat(200_000), fc.constantFrom(16_383, 16_384, 2 ** 40, 2 ** 40 + 1));
const step = fc.record({ add: fc.boolean(), number });

function checked(set: NumberSet, oracle: ReadonlySet<number>): void {
  const sorted = [...oracle].toSorted((one, other) => one - other);
  expect([...set.values()]).toEqual(sorted);
  expect(set.size).toBe(oracle.size);
  expect(set.least).toBe(sorted[0] ?? Number.POSITIVE_INFINITY);
}

it('holds what a Set holds, in order', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const set = new NumberSet();
      const oracle = new Set<number>();
      for (const { add, number: each } of steps) {
        if (add) set.add(each);
        else set.delete(each);
        if (add) oracle.add(each);
        else oracle.delete(each);
        expect(set.has(each)).toBe(oracle.has(each));
        expect(set.least).toBe(Math.min(Number.POSITIVE_INFINITY, ...oracle));
      }
      checked(set, oracle);
    }),
  );
});

it('finds what follows a number, adds another set, and deletes what is below a number, as lists do', () => {
  const numbers = fc.array(number, { maxLength: 100 });
  fc.assert(
    fc.property(numbers, numbers, number, (own, others, at) => {
      const [set, other] = [new NumberSet(), new NumberSet()];
      for (const each of own) set.add(each);
      for (const each of others) other.add(each);
      set.addAll(other);
      const all = [...own, ...others];
      checked(set, new Set(all));
      checked(other, new Set(others));
      expect(set.from(at)).toBe(Math.min(Number.POSITIVE_INFINITY, ...all.filter((each) => each >= at)));
      set.cut(at);
      checked(set, new Set(all.filter((each) => each >= at)));
      checked(other, new Set(others));
    }),
  );
});

it.each([1, 3, 7, 40])('holds many numbers %i apart, and gives them up again', (apart) => {
  const set = new NumberSet();
  const oracle = new Set<number>();
  for (let at = 0; at < 20_000; at += 1) {
    // Not quite in order, as batches come.
    const each = (at % 10 === 0 ? at + 9 : at - 1) * apart + apart;
    set.add(each);
    oracle.add(each);
  }
  checked(set, oracle);
  for (const each of [...oracle].filter((_, at) => at % 3 !== 0)) {
    set.delete(each);
    oracle.delete(each);
  }
  checked(set, oracle);
  for (const each of oracle) set.delete(each);
  expect([set.size, [...set.values()]]).toEqual([0, []]);
});
