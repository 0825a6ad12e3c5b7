import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WholeList } from '../../../src/history/service/whole-list.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { answering, idsOf, listing, read, run, type Answer, type Listing } from './listing.ts';
import { id } from './stand-in.ts';
import { lastLine, lines } from './support.ts';

const CAP = 50;
/** Pages of 50, whatever is asked for, and nothing of how many there are. */
const capped = (ids: readonly string[], options: Partial<Listing> = {}) =>
  answering(listing(ids, { cap: CAP, ...options }), options.isFirst === true ? 50 : 1000);

const LISTS = ['users', 'orders', 'backfill'];

test.each(LISTS)(
  '%s: a list in pages of the service’s own size, without a total, is read to its end',
  async (what) => {
    for (const count of [120, 100, CAP, 7]) {
      for (const behind of ['nothing', 404, 'last'] as const) {
        const { ended, ids } = await read(what, await capped(idsOf(1, count + 1), { behind }));
        expect([count, behind, ended.code, ids]).toEqual([count, behind, 0, idsOf(1, count + 1)]);
      }
    }
  },
);

test.each([
  ['100, whatever its pages have', { size: 100, limit: 500 }],
  ['50, and the items of the page as the total', { size: CAP, limit: CAP, total: CAP }],
])('a service that says that its pages have %s', async (_, said) => {
  for (const what of LISTS) {
    const { ended, ids } = await read(what, await capped(idsOf(1, 121), { beside: () => said }));
    expect([what, ended.code, ids]).toEqual([what, 0, idsOf(1, 121)]);
  }
});

test.each(LISTS)(
  '%s: a service that lists its first page for ever is left, and the list not called whole',
  async (what) => {
    const { ended } = await read(what, await capped(idsOf(1, 121), { isFirst: true }));
    expect([ended.code, ended.stderr]).toEqual([
      what === 'backfill' ? 1 : 3,
      expect.stringContaining('the same page twice'),
    ]);
  },
);

test('a service that lists the same items in another order on each page is left', async () => {
  let turn = 0;
  const env = await answering(() => {
    const ids = idsOf(1, CAP + 1);
    ids.push(...ids.splice(0, (turn += 7) % CAP));
    return [200, { orders: ids.map((one) => ({ id: one })) }];
  }, 50);
  const { ended, ids } = await read('orders', env);
  expect([ended.code, ids.toSorted()]).toEqual([3, idsOf(1, CAP + 1)]);
});

test('reading a list without an end ends', async () => {
  let number = 0;
  const list = new WholeList<string>(
    10,
    ({ size }) => {
      const keys = Array.from({ length: size }, () => String((number += 1)));
      return Promise.resolve({ items: keys, keys, total: undefined, full: undefined, more: null });
    },
    1000,
  );
  let items = 0;
  for await (const page of list.pages()) items += page.items.length;
  expect([items < 2000, list.problem]).toEqual([true, expect.stringContaining('does not come to an end')]);
});

test('a page that is refused without a total leaves a list that is not called whole', async () => {
  const { ended, ids } = await read('orders', await capped(idsOf(1, 71), { behind: 400 }));
  expect([ended.code, ids]).toEqual([3, idsOf(1, 71)]);
  expect(lastLine(ended)['incomplete']).toEqual([
    expect.stringContaining('refuses the page behind 70 items'),
  ]);
});

test.each([
  ['next_cursor', (isLast: boolean) => ({ next_cursor: isLast ? 'there' : 'on' })],
  ['has_more', () => ({ has_more: true })],
])('a list whose last page has %s is not called whole', async (name, beside) => {
  for (const what of LISTS) {
    const { ended } = await read(what, await capped(idsOf(1, 71), { beside }));
    const [code, said] = [what === 'backfill' ? 1 : 3, `says ${name} behind 70 items`];
    expect([what, ended.code, ended.stderr]).toEqual([what, code, expect.stringContaining(said)]);
  }
});

const nothingMore = (isLast: boolean): object => ({
  has_more: !isLast,
  next_cursor: isLast ? null : 'on',
  error: null,
});

test('a list whose last page says that none follow is whole', async () => {
  for (const what of LISTS) {
    const { ended, ids } = await read(what, await capped(idsOf(1, 71), { beside: nothingMore }));
    expect([what, ended.code, ids]).toEqual([what, 0, idsOf(1, 71)]);
  }
});

test.each([
  ['an error', [200, { error: 'made up' }]],
  ['the status 206', [206, {}]],
] as const)('%s beside the items: the list is not called whole', async (_, [status, beside]) => {
  const listOf: Readonly<Record<string, object>> = {
    users: { users: [{ user_id: id(1) }], total: 1, limit: 500 },
    orders: { orders: [{ id: id(1) }], total: 1, size: 100 },
    'lab-tests': { data: [{ id: id(1) }] },
    'lab-accounts': {},
    'bulk-ops': { data: [{ type: 'link_bulk_import' }] },
    'historical-pulls': { data: [] },
  };
  for (const [what, list] of Object.entries(listOf)) {
    const { ended } = await read(what, await answering(() => [status, { ...list, ...beside }]));
    expect([what, ended.code, ended.stderr]).toEqual([
      what,
      1,
      expect.stringMatching(/error\W+ beside|a part/),
    ]);
  }
});

test.each(['lab-tests', 'lab-accounts'])(
  '%s, which has no pages, that says that more follow is not called whole',
  async (what) => {
    const env = await answering(() => [200, { data: [{ id: id(1) }], next_cursor: 'there' }]);
    expect((await read(what, env)).ended.code).toBe(3);
  },
);

const ops = (isLast: boolean, beside: object): Answer => [
  200,
  {
    data: [
      { type: 'link_bulk_import', started_at: isLast ? '2026-01-02T00:00:00Z' : '2026-01-01T00:00:00Z' },
    ],
    ...beside,
  },
];
const rows = async (answer: (url: URL) => Answer): Promise<unknown> => {
  const { ended } = await read('bulk-ops', await answering(answer));
  return [ended.code, Reflect.get(lastLine(ended)['rows'] as object, 'bulk_ops')];
};
const isLast = (url: URL): boolean => url.searchParams.get('next_cursor') === 'on';

test('a list with cursors is followed by `next`, and is not whole when it says that more follow and names no page', async () => {
  expect(await rows((url) => ops(isLast(url), { next: isLast(url) ? null : 'on' }))).toEqual([0, 2]);
  expect(await rows(() => ops(true, { has_more: true }))).toEqual([3, 1]);
});

test('pages with nothing new, and another cursor each, end', async () => {
  let cursor = 0;
  const env = await answering(() => [200, { data: [], next_cursor: String((cursor += 1)) }]);
  const { ended } = await read('bulk-ops', env);
  expect([ended.code, ended.stderr]).toEqual([3, expect.stringContaining('nothing new')]);
});

test.each([
  ['next_cursor', 200, { next_cursor: 'there' }],
  ['has_more', 200, { has_more: true }],
  ['error', 200, { error: { code: 'made_up' } }],
  ['206', 206, {}],
])('meals with %s beside them are not called whole', async (name, status, beside) => {
  const meal = { id: '1', user_id: id(1), timestamp: '2026-01-01T08:00:00+00:00' };
  const out = await temporaryFolder();
  const backfill = async (answer: Answer) => {
    const range = ['--since', '2026-01-01', '--until', '2026-01-02', '--user', id(1), '--replace'];
    return run(out, await answering(() => answer), 'backfill', ...range);
  };
  const error = expect.stringContaining(name === '206' ? 'a part' : `"${name}" beside its list`) as string;
  for (const document of [
    { meals: [meal], ...beside },
    { ...beside, meals: [meal] },
  ]) {
    expect((await backfill([status, document])).code).toBe(3);
    expect(lines(join(out, '_backfill.ndjson'))).toMatchObject([{ error }]);
  }
  const whole = { meals: [meal], error: null, next_cursor: '', has_more: false };
  expect((await backfill(whole)).code).toBe(0);
});
