import { expect, test } from 'vitest';
import { fetchTask } from '../../../src/history/backfill/fetch-task.ts';
import { MEAL } from '../../../src/history/resources.ts';
import { ServiceClient } from '../../../src/history/service/client.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { answering, idsOf, read } from './listing.ts';
import { id } from './stand-in.ts';
import { lastLine } from './support.ts';

/** Orders by page; what is behind the last has none, or the last again. */
function ordersOf(
  pages: readonly (readonly string[])[],
  said: number | null | 'of the page' | readonly number[],
  isClamped = false,
) {
  return ({ searchParams }: URL): object => {
    const page = Number(searchParams.get('page'));
    const behind = isClamped ? pages.at(-1) : undefined;
    const orders = (pages[page - 1] ?? behind ?? []).map((order) => ({ id: order }));
    const total = said === 'of the page' ? orders.length : Array.isArray(said) ? said[page - 1] : said;
    return { orders, total, page, size: 100 };
  };
}

const TWO_PAGES = [idsOf(0, 100), idsOf(100, 120)];

test.each([
  ['as it says', TWO_PAGES, 120, 120, null],
  ['more than it says', TWO_PAGES, 5, 120, null],
  ['a whole number of pages, and no total', [idsOf(0, 100)], null, 100, null],
  ['its pages, and the items of each as the total', TWO_PAGES, 'of the page', 120, null],
  ['half a page', [idsOf(0, 100), idsOf(100, 110)], 120, 110, 'there are 120, and listed 110'],
  ['a million that it does not have', TWO_PAGES, 1e6, 120, 'and listed 120'],
  ['the same page again', [idsOf(0, 100), idsOf(0, 100)], 120, 100, 'the same page twice'],
  [
    'one less on its second page, as one of the first has gone',
    [idsOf(0, 100), idsOf(101, 120)],
    [120, 119],
    119,
    'some went while it was read',
  ],
] as const)('orders of a service that lists %s', async (_, pages, total, rows, problem) => {
  const { ended, ids } = await read('orders', await answering(ordersOf(pages, total)));
  expect(ids).toEqual([...new Set<string>(pages.flat())].slice(0, rows));
  expect(ended.code).toBe(problem === null ? 0 : 3);
  const incomplete = problem === null ? [] : [expect.stringContaining(problem)];
  expect(lastLine(ended)).toMatchObject({ ok: problem === null, incomplete });
});

test('a list that ends with a full page ends well, whatever the service says of the page behind it', async () => {
  const pages = [idsOf(0, 100), idsOf(100, 200)];
  for (const answer of [
    ordersOf(pages, null, true),
    ordersOf(pages, 200, true),
    (url: URL) => (url.searchParams.get('page') === '3' ? 404 : ordersOf(pages, 200)(url)),
  ]) {
    const { ended, ids } = await read('orders', await answering(answer));
    expect([ended.code, ids], ended.stderr).toEqual([0, idsOf(0, 200)]);
  }
});

test('a cursor that leads back ends a pull with what came, and its name', async () => {
  const answer = { data: [{ id: id(1) }], next_cursor: 'round' };
  const { ended } = await read('bulk-ops', await answering(() => answer));
  expect([ended.code, ended.stderr]).toEqual([3, expect.stringContaining('the cursor round twice')]);
});

/** A service of twelve users, in pages of five; `begin` says where a page begins that is asked for from an offset. */
function usersFrom(begin: (offset: number) => number, total = 12) {
  return ({ pathname, searchParams }: URL): object => {
    if (pathname.startsWith('/v2/summary/meal/')) return { meals: [] };
    const from = begin(Number(searchParams.get('offset')));
    const users = idsOf(1, 13).map((user_id) => ({ user_id }));
    return { users: users.slice(from, from + 5), total, limit: 5 };
  };
}

test('users are all of them, or the backfill of all users does not begin', async () => {
  const [less, more] = [3, 20].map((total) => answering(usersFrom((offset) => offset, total)));
  expect(lastLine((await read('backfill', await less!)).ended)).toMatchObject({ users: 12 });
  const { ended } = await read('backfill', await more!);
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining('there are 20, and listed 12')]);
});

test.each([
  ['lists none from within a page', (offset: number) => (offset % 5 === 0 ? offset : 12)],
  ['lists the page again from within it', (offset: number) => offset - (offset % 5)],
])('all users of a service that %s', async (_, begin) => {
  const { ended, ids } = await read('backfill', await answering(usersFrom(begin)));
  expect([ended.code, new Set(ids)]).toEqual([0, new Set(idsOf(1, 13))]);
});

test('what a page has twice are two rows', async () => {
  const ids = [id(7), id(7), ...idsOf(10, 15)];
  const found = await read('orders', await answering(ordersOf([ids], 7)));
  expect([found.ended.code, found.ids]).toEqual([0, ids]);
});

test('an answer without a byte does not say that there are no meals', async () => {
  const env = await answering(() => '');
  const service = new ServiceClient({ baseUrl: env['MILLRACE_SERVICE_BASE_URL'] ?? '', apiKey: 'made-up' });
  const task = { user: id(1), resource: MEAL, provider: null, start: '2026-01-01', end: '2026-01-02' };
  const pulled = fetchTask(service, task, await temporaryFolder(), AbortSignal.timeout(60_000));
  await expect(pulled).rejects.toThrow('was empty');
});
