import { expect, test } from 'vitest';
import { seededRandom } from '../../support/random.ts';
import { answering, idsOf, listing, read, type Listing } from './listing.ts';
import { id } from './stand-in.ts';
import { lastLine } from './support.ts';

/** Items of a list that changes while it is read, and what of them is there when it was. */
interface Moving extends Pick<Listing, 'onPage' | 'fixed'> {
  readonly items: string[];
  /** Whether the answers say how many there are. */
  readonly total?: boolean;
}

async function readMoving(what: string, { items, total = true, ...options }: Moving) {
  const beside = (_: boolean, size: number): object => {
    return { size, limit: size, ...(total ? { total: items.length } : {}) };
  };
  return read(what, await answering(listing(items, { cap: 5, beside, ...options })));
}

const KINDS = ['orders', 'markers', 'users', 'backfill'];
const CHANGES: Readonly<Record<string, (items: string[]) => unknown>> = {
  'one goes': (items) => items.shift(),
  'one goes, and another comes at the end': (items) => (items.shift(), items.push(id(99))),
  'one goes, and another comes among those that are not read': (items) => (
    items.shift(),
    items.splice(9, 0, id(99))
  ),
  'two go, and one comes in front': (items) => items.splice(0, 2, id(99)),
  'one moves from the end to the front': (items) => items.unshift(items.pop() ?? ''),
  'one goes, and another moves from the end to the front': (items) => (
    items.shift(),
    items.unshift(items.pop() ?? '')
  ),
};
const CASES = KINDS.flatMap((kind) => Object.keys(CHANGES).map((change) => [kind, change] as const));

test.each(CASES)('%s has all that there are, when %s while the list is read', async (kind, change) => {
  for (const total of [true, false]) {
    const items = idsOf(1, 19);
    const onPage = (pages: number): void => void (pages === 1 && CHANGES[change]?.(items));
    const { ended, ids } = await readMoving(kind, { items, onPage, total });
    expect([total, ended.code, items.filter((one) => !ids.includes(one))]).toEqual([total, 0, []]);
    expect(ids).toHaveLength(new Set(ids).size);
  }
});

test('a list that moves each time it is read is not said to be whole', async () => {
  const items = idsOf(1, 19);
  const onPage = (): void => void (items.shift(), items.push(id(1000 + Math.random() * 1e6)));
  const { ended } = await readMoving('orders', { items, onPage });
  expect([ended.code, lastLine(ended)['incomplete']]).toEqual([3, [expect.stringContaining('moved')]]);
});

test('a list that grows in front all the time is whole, and no item comes twice', async () => {
  const items = idsOf(1, 19);
  const onPage = (pages: number): void => void items.unshift(id(100 + pages));
  const { ended, ids } = await readMoving('orders', { items, onPage });
  expect([ended.code, idsOf(1, 19).filter((one) => !ids.includes(one))]).toEqual([0, []]);
  expect(ids).toHaveLength(new Set(ids).size);
});

test('whatever comes and goes: who says that a list is whole has all that were there throughout', async () => {
  let whole = 0;
  for (let seed = 1; seed <= 40; seed += 1) {
    const random = seededRandom(seed);
    const below = (most: number): number => Math.floor(random() * most);
    const [items, total] = [idsOf(1, 9 + below(20)), random() < 0.5];
    const stayed = new Set(items);
    const onPage = (pages: number): void => {
      if (random() < 0.6 || pages > 14) return;
      for (let change = below(3); change >= 0; change -= 1) {
        if (random() < 0.6) for (const gone of items.splice(below(items.length), 1)) stayed.delete(gone);
        if (random() < 0.6) items.splice(below(items.length), 0, id(1000 * pages + change));
      }
    };
    const { ended, ids } = await readMoving(KINDS[seed % 4] ?? '', { items, onPage, total });
    if (ended.code !== 0) continue;
    whole += 1;
    expect([seed, [...stayed].filter((one) => !ids.includes(one))]).toEqual([seed, []]);
  }
  expect(whole).toBeGreaterThan(10);
});

test('a service with pages of its own size is read as it was, and a total that fell is reported', async () => {
  for (const total of [true, false]) {
    const steady = await readMoving('orders', { items: idsOf(1, 19), total, fixed: true });
    expect([steady.ended.code, steady.ids]).toEqual([0, idsOf(1, 19)]);
  }
  const items = idsOf(1, 19);
  const onPage = (): void => void (items.length > 8 && items.shift());
  const { ended } = await readMoving('orders', { items, onPage, fixed: true });
  expect([ended.code, ended.stderr]).toEqual([3, expect.stringContaining('incomplete')]);
});
