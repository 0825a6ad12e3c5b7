import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Chain, type Linked } from '../../src/lib/chain.ts';

class Item implements Linked {
  sooner: this | null = null;
  later: this | null = null;
}

test('a chain has what was added and not removed, in the order of adding', () => {
  const steps = fc.array(fc.record({ add: fc.boolean(), which: fc.nat(5) }), { maxLength: 40 });
  fc.assert(
    fc.property(steps, (all) => {
      const items = Array.from({ length: 6 }, () => new Item());
      const chain = new Chain<Item>();
      let expected: Item[] = [];
      for (const { add, which } of all) {
        const item = items[which] as Item;
        const isThere = expected.includes(item);
        if (!add || isThere) {
          expect(chain.remove(item)).toBe(isThere);
          expected = expected.filter((other) => other !== item);
          expect([item.sooner, item.later]).toEqual([null, null]);
        } else {
          chain.add(item);
          expected.push(item);
        }
        const found: Item[] = [];
        for (let at = chain.first; at !== null; at = at.later) found.push(at);
        expect(found.map((one) => items.indexOf(one))).toEqual(expected.map((one) => items.indexOf(one)));
      }
    }),
  );
});
