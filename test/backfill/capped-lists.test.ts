import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WholeList } from '../../src/service/whole-list.ts';
import { serve } from '../support/listen.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, type Ended } from '../support/millrace.ts';
import { lastLine, lines } from './support.ts';

const CAP = 50;
const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const idsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => id(n + 1));

type Answer = readonly [status: number, body: object];

/** A service of plain answers that is given up after so many requests. */
async function answering(answer: (url: URL) => Answer, most = 1000): Promise<Record<string, string>> {
  let requests = 0;
  const url = await serve((request, response) => {
    if ((requests += 1) > most) {
      response.destroy();
      return;
    }
    const [status, body] = answer(new URL(request.url ?? '', 'http://localhost'));
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  return { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
}

interface Capped {
  readonly beside?: (isLast: boolean) => object;
  /** What it answers behind its last page: no items, 404, 400, or its last page again. */
  readonly behind?: 'nothing' | 404 | 400 | 'last';
  /** Whether it takes every page for the first. */
  readonly isFirst?: boolean;
}

/** Users, orders and meals of a service that gives 50 a page, whatever it is asked for, and does not say how many there are. */
function capped(ids: readonly string[], { beside, behind = 'nothing', isFirst = false }: Capped = {}) {
  return ({ pathname, searchParams }: URL): Answer => {
    if (pathname.startsWith('/v2/summary/meal/')) return [200, { meals: [] }];
    const numberOf = (name: string): number => Number(searchParams.get(name) ?? 0);
    const size = Math.min(numberOf('size') || numberOf('limit'), CAP);
    let from = pathname === '/v2/user' ? numberOf('offset') : (numberOf('page') - 1) * size;
    if (isFirst) from = 0;
    if (from >= ids.length && typeof behind === 'number') return [behind, {}];
    if (from >= ids.length && behind === 'last') from = Math.floor((ids.length - 1) / size) * size;
    const found = ids.slice(from, from + size);
    const isLast = from + size >= ids.length;
    const rows = found.map((one) => (pathname === '/v2/user' ? { user_id: one } : { id: one }));
    return [200, { [pathname === '/v2/user' ? 'users' : 'orders']: rows, ...beside?.(isLast) }];
  };
}

async function read(
  what: string,
  env: Record<string, string>,
): Promise<{ readonly ended: Ended; readonly ids: string[] }> {
  const out = await temporaryFolder();
  const command = what === 'backfill' ? [what, '--all-users', '--since', '2026-01-01'] : ['pull', what];
  const ended = await millrace([...command, '--out', out, '--json'], { env, cwd: out });
  const [file, column] =
    what === 'backfill' ? ['_backfill', 'user_id'] : [what, what === 'users' ? 'user_id' : 'id'];
  const isThere = ended.code === 0 || ended.code === 3;
  const rows = isThere ? lines(join(out, `${file?.replaceAll('-', '_')}.ndjson`)) : [];
  return { ended, ids: rows.map((row) => String(row[column])) };
}

const LISTS = ['users', 'orders', 'backfill'];

test.each(LISTS)(
  '%s: a list in pages of the service’s own size, without a total, is read to its end',
  async (what) => {
    for (const count of [120, 100, CAP, 7]) {
      for (const behind of ['nothing', 404, 'last'] as const) {
        const { ended, ids } = await read(what, await answering(capped(idsOf(count), { behind })));
        expect([count, behind, ended.code, ids]).toEqual([count, behind, 0, idsOf(count)]);
      }
    }
  },
);

test.each([
  ['100, whatever its pages have', { size: 100, limit: 500 }],
  ['50, and the items of the page as the total', { size: CAP, limit: CAP, total: CAP }],
])('a service that says that its pages have %s', async (_, said) => {
  for (const what of LISTS) {
    const { ended, ids } = await read(what, await answering(capped(idsOf(120), { beside: () => said })));
    expect([what, ended.code, ids]).toEqual([what, 0, idsOf(120)]);
  }
});

test.each(LISTS)(
  '%s: a service that lists its first page for ever is left, and the list not called whole',
  async (what) => {
    const env = await answering(capped(idsOf(120), { isFirst: true }), 50);
    const { ended } = await read(what, env);
    expect([ended.code, ended.stderr]).toEqual([
      what === 'backfill' ? 1 : 3,
      expect.stringContaining('the same page twice'),
    ]);
  },
);

test('a service that lists the same items in another order on each page is left', async () => {
  let turn = 0;
  const env = await answering(() => {
    const ids = idsOf(CAP);
    ids.push(...ids.splice(0, (turn += 7) % CAP));
    return [200, { orders: ids.map((one) => ({ id: one })) }];
  }, 50);
  const { ended, ids } = await read('orders', env);
  expect([ended.code, ids.toSorted()]).toEqual([3, idsOf(CAP)]);
});

test('a list that goes on and on ends', async () => {
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
  const { ended, ids } = await read('orders', await answering(capped(idsOf(70), { behind: 400 })));
  expect([ended.code, ids]).toEqual([3, idsOf(70)]);
  expect(lastLine(ended)['incomplete']).toEqual([
    expect.stringContaining('refuses the page behind 70 items'),
  ]);
});

test.each([
  ['next_cursor', (isLast: boolean) => ({ next_cursor: isLast ? 'there' : 'on' })],
  ['has_more', () => ({ has_more: true })],
])('a list whose last page has %s is not called whole', async (name, beside) => {
  for (const what of LISTS) {
    const { ended } = await read(what, await answering(capped(idsOf(70), { beside })));
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
    const { ended, ids } = await read(what, await answering(capped(idsOf(70), { beside: nothingMore })));
    expect([what, ended.code, ids]).toEqual([what, 0, idsOf(70)]);
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

test('a list with cursors goes on by `next`, and is not whole where it says that more follow and names none', async () => {
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
  for (const document of [
    { meals: [meal], ...beside },
    { ...beside, meals: [meal] },
  ]) {
    const env = await answering(() => [status, document]);
    const range = ['--since', '2026-01-01', '--until', '2026-01-02', '--user', id(1), '--replace'];
    const ended = await millrace(['backfill', ...range, '--out', out, '--json'], { env, cwd: out });
    const said = name === '206' ? 'a part' : `"${name}" beside its list`;
    expect([ended.code, lines(join(out, '_backfill.ndjson'))]).toMatchObject([
      3,
      [{ error: expect.stringContaining(said) as string }],
    ]);
  }
  const whole = await answering(() => [
    200,
    { meals: [meal], error: null, next_cursor: '', has_more: false },
  ]);
  const range = ['--since', '2026-01-01', '--until', '2026-01-02', '--user', id(1), '--replace'];
  expect((await millrace(['backfill', ...range, '--out', out], { env: whole, cwd: out })).code).toBe(0);
});
