import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pullMeals } from '../../src/backfill/pull-meals.ts';
import { ServiceClient } from '../../src/service/client.ts';
import { serve } from '../support/listen.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, type Ended } from '../support/millrace.ts';
import { lastLine, lines } from './support.ts';

const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const idsOf = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, n) => id(from + n));

/** A service of a few answers; null is 404. */
async function answering(answer: (url: URL) => string | null): Promise<Record<string, string>> {
  const url = await serve((request, response) => {
    const body = answer(new URL(request.url ?? '', 'http://localhost'));
    response.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' }).end(body ?? '{}');
  });
  return { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
}

/** Orders by page; what is behind the last has none, or the last again. */
function ordersOf(
  pages: readonly (readonly string[])[],
  said: number | null | 'of the page' | readonly number[],
  isClamped = false,
) {
  return ({ searchParams }: URL): string => {
    const behind = isClamped ? pages.at(-1) : undefined;
    const orders = (pages[Number(searchParams.get('page')) - 1] ?? behind ?? []).map((order) => ({
      id: order,
    }));
    const number = Number(searchParams.get('page'));
    const total = said === 'of the page' ? orders.length : Array.isArray(said) ? said[number - 1] : said;
    return JSON.stringify({ orders, total, page: Number(searchParams.get('page')), size: 100 });
  };
}

const run = (out: string, env: Record<string, string>, ...args: string[]): Promise<Ended> =>
  millrace([...args, '--out', out, '--json'], { env, cwd: out });

test.each([
  ['as it says', [idsOf(0, 100), idsOf(100, 120)], 120, 120, null],
  ['more than it says', [idsOf(0, 100), idsOf(100, 120)], 5, 120, null],
  ['a whole number of pages, and no total', [idsOf(0, 100)], null, 100, null],
  [
    'its pages, and the items of each as the total',
    [idsOf(0, 100), idsOf(100, 200), idsOf(200, 250)],
    'of the page',
    250,
    null,
  ],
  ['half a page', [idsOf(0, 100), idsOf(100, 110)], 120, 110, 'there are 120, and listed 110'],
  ['a million that it does not have', [idsOf(0, 100), idsOf(100, 120)], 1e6, 120, 'and listed 120'],
  ['the same page again', [idsOf(0, 100), idsOf(0, 100)], 120, 100, 'the same page twice'],
  [
    'one less on its second page, as one of the first has gone',
    [idsOf(0, 100), idsOf(101, 120)],
    [120, 119],
    119,
    'some went meanwhile',
  ],
] as const)('orders of a service that lists %s', async (_, pages, total, rows, problem) => {
  const [out, env] = [await temporaryFolder(), await answering(ordersOf(pages, total))];
  const ended = await run(out, env, 'pull', 'orders');
  const found = lines(join(out, 'orders.ndjson')).map((row) => row['id']);
  expect(found).toEqual([...new Set<string>(pages.flat())].slice(0, rows));
  expect(ended.code).toBe(problem === null ? 0 : 3);
  const incomplete = problem === null ? [] : [expect.stringContaining(problem)];
  expect(lastLine(ended)).toMatchObject({ ok: problem === null, incomplete });
});

test('a list that ends with a full page ends well, whatever the service says of the page behind it', async () => {
  const pages = [idsOf(0, 100), idsOf(100, 200)];
  for (const said of [null, 200]) {
    const [out, env] = [await temporaryFolder(), await answering(ordersOf(pages, said, true))];
    expect((await run(out, env, 'pull', 'orders')).code).toBe(0);
    expect(lines(join(out, 'orders.ndjson'))).toHaveLength(200);
  }
  const out = await temporaryFolder();
  const env = await answering((url) =>
    url.searchParams.get('page') === '3' ? null : ordersOf(pages, 200)(url),
  );
  const ended = await run(out, env, 'pull', 'orders');
  expect([ended.code, ended.stderr]).toEqual([0, expect.any(String)]);
  expect(lines(join(out, 'orders.ndjson'))).toHaveLength(200);
});

test('a cursor that leads back ends a pull with what came, and its name', async () => {
  const answer = { data: [{ id: id(1) }], next_cursor: 'round' };
  const [out, env] = [await temporaryFolder(), await answering(() => JSON.stringify(answer))];
  const ended = await run(out, env, 'pull', 'bulk-ops');
  expect([ended.code, ended.stderr]).toEqual([3, expect.stringContaining('the cursor round twice')]);
});

test('users are all of them, or the backfill of all users does not begin', async () => {
  const users = idsOf(1, 13).map((user_id) => ({ user_id }));
  let total = 3;
  const env = await answering(({ pathname, searchParams }) => {
    if (pathname.startsWith('/v2/summary/meal/')) return '{"meals":[]}';
    const offset = Number(searchParams.get('offset'));
    return JSON.stringify({ users: users.slice(offset, offset + 5), total, limit: 5 });
  });
  const backfill = async (): Promise<Ended> =>
    run(await temporaryFolder(), env, 'backfill', '--since', '2026-01-01', '--all-users');
  // The service says 3, and has 12.
  expect(lastLine(await backfill())).toMatchObject({ users: 12 });
  total = 20;
  const short = await backfill();
  expect([short.code, short.stderr]).toEqual([1, expect.stringContaining('there are 20, and listed 12')]);
});

test.each([
  ['one of the first page goes', (users: string[]) => void users.shift()],
  ['one goes, and another comes in front', (users: string[]) => users.splice(0, 2, id(99))],
  ['one goes, and another comes at the end', (users: string[]) => void (users.shift(), users.push(id(99)))],
  ['one comes in front', (users: string[]) => void users.unshift(id(99))],
])('no user is passed over when %s while the list is read', async (_, change) => {
  const users = idsOf(1, 13);
  let pages = 0;
  const env = await answering(({ pathname, searchParams }) => {
    if (pathname.startsWith('/v2/summary/meal/')) return '{"meals":[]}';
    const [offset, asked] = ['offset', 'limit'].map((name) => Number(searchParams.get(name)));
    const limit = Math.min(asked ?? 0, 5);
    const page = users.slice(offset, (offset ?? 0) + limit).map((user_id) => ({ user_id }));
    const answer = JSON.stringify({ users: page, total: users.length, limit });
    if ((pages += 1) === 1) change(users);
    return answer;
  });
  const out = await temporaryFolder();
  expect((await run(out, env, 'backfill', '--since', '2026-01-01', '--all-users')).code).toBe(0);
  const asked = new Set(lines(join(out, '_backfill.ndjson')).map((row) => row['user_id']));
  expect(users.filter((user) => !asked.has(user))).toEqual([]);
});

test.each([
  ['lists none from within a page', (offset: number) => (offset % 5 === 0 ? offset : 12)],
  ['lists the page again from within it', (offset: number) => offset - (offset % 5)],
])('all users of a service that %s', async (_, begin) => {
  const users = idsOf(1, 13);
  const env = await answering(({ pathname, searchParams }) => {
    if (pathname.startsWith('/v2/summary/meal/')) return '{"meals":[]}';
    const from = begin(Number(searchParams.get('offset')));
    const page = users.slice(from, from + 5).map((user_id) => ({ user_id }));
    return JSON.stringify({ users: page, total: users.length, limit: 5 });
  });
  const out = await temporaryFolder();
  const ended = await run(out, env, 'backfill', '--since', '2026-01-01', '--all-users');
  const asked = lines(join(out, '_backfill.ndjson')).map((row) => row['user_id']);
  expect([ended.code, new Set(asked)]).toEqual([0, new Set(users)]);
});

test('an order that moves to the next page, as another comes in front, is one row', async () => {
  const [before, after] = [idsOf(0, 120), [id(999), ...idsOf(0, 120)]];
  const pages = [before.slice(0, 100), after.slice(100)];
  const [out, env] = [await temporaryFolder(), await answering(ordersOf(pages, [120, 121]))];
  const ended = await run(out, env, 'pull', 'orders');
  expect([ended.code, lines(join(out, 'orders.ndjson')).map((row) => row['id'])]).toEqual([0, before]);
});

test('what a page has twice are two rows', async () => {
  const ids = [id(7), id(7), ...idsOf(10, 15)];
  const [out, env] = [await temporaryFolder(), await answering(ordersOf([ids], 7))];
  const ended = await run(out, env, 'pull', 'orders');
  expect([ended.code, lines(join(out, 'orders.ndjson')).map((row) => row['id'])]).toEqual([0, ids]);
});

test('cursors that lead round in a circle of two end a list with an error', async () => {
  const env = await answering(({ searchParams }) => {
    const next = searchParams.get('next_cursor') === 'there' ? 'back' : 'there';
    return JSON.stringify({ data: [{ status: 'success' }], next_cursor: next });
  });
  const service = new ServiceClient({ baseUrl: env['MILLRACE_SERVICE_BASE_URL'] ?? '', apiKey: 'made-up' });
  const read = async (): Promise<void> => {
    let items = 0;
    for await (const _ of service.bulk.ops()) if ((items += 1) > 10) throw new Error('it goes round');
  };
  await expect(read()).rejects.toThrow('leads back');
});

test('an answer without a byte does not say that there are no meals', async () => {
  const env = await answering(() => '');
  const service = new ServiceClient({ baseUrl: env['MILLRACE_SERVICE_BASE_URL'] ?? '', apiKey: 'made-up' });
  const task = { user: id(1), provider: null, start: '2026-01-01', end: '2026-01-02' };
  const pulled = pullMeals(service, task, await temporaryFolder(), AbortSignal.timeout(60_000));
  await expect(pulled).rejects.toThrow('was empty');
});
