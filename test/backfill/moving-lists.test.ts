import { join } from 'node:path';
import { expect, test } from 'vitest';
import { serve } from '../support/listen.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, type Ended } from '../support/millrace.ts';
import { seededRandom } from '../support/random.ts';
import { lastLine, lines } from './support.ts';

const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const idsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => id(n + 1));
const CAP = 5;

interface Lists {
  readonly items: string[];
  /** After each answer that was asked for more than one item: how many there were. */
  onPage: (pages: number) => void;
  /** Whether the answers say how many there are. */
  readonly total?: boolean;
  /** Whether the service gives pages of its own size, whatever is asked for. */
  readonly fixed?: boolean;
}

const MEMBER: Readonly<Record<string, string>> = { '/orders': 'orders', '/v3/lab_tests/markers': 'markers' };

/** Its number is that of the id. */
const markerOf = (one: string): object => {
  const number = Number(one.slice(-12));
  return { id: number, name: 'made up', slug: one, lab_id: 1, provider_id: one, type: 'biomarker' };
};

/** A service with one list, in pages of five at most, that changes when a test says so. */
async function listing(lists: Lists): Promise<Record<string, string>> {
  let pages = 0;
  const url = await serve((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const numberOf = (name: string): number => Number(searchParams.get(name) ?? 0);
    const answer = (): object => {
      if (pathname.startsWith('/v2/summary/meal/')) return { meals: [] };
      const asked = numberOf('size') || numberOf('limit');
      const size = lists.fixed === true ? CAP : Math.min(asked, CAP);
      const from = pathname === '/v2/user' ? numberOf('offset') : (numberOf('page') - 1) * size;
      const found = lists.items.slice(from, from + size);
      const total = lists.total === false ? {} : { total: lists.items.length };
      if (pathname === '/v2/user')
        return { users: found.map((user_id) => ({ user_id })), limit: size, ...total };
      const rows = found.map((one) => (pathname === '/orders' ? { id: one } : markerOf(one)));
      return { [MEMBER[pathname] ?? '']: rows, size, ...total };
    };
    const body = JSON.stringify(answer());
    if (!/(size|limit)=1(&|$)/.test(request.url ?? '')) lists.onPage((pages += 1));
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  });
  return { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
}

/** Pulls a list, or asks for the history of everybody on it: what came of it, and which ids are there. */
async function read(what: string, lists: Lists): Promise<{ readonly ended: Ended; readonly ids: string[] }> {
  const [out, env] = [await temporaryFolder(), await listing(lists)];
  const command = what === 'backfill' ? [what, '--all-users', '--since', '2026-01-01'] : ['pull', what];
  const ended = await millrace([...command, '--out', out, '--json'], { env, cwd: out });
  const [file, column] =
    what === 'backfill' ? ['_backfill', 'user_id'] : [what, what === 'users' ? 'user_id' : 'id'];
  const rows = ended.code === 1 ? [] : lines(join(out, `${file}.ndjson`));
  return {
    ended,
    ids: rows.map((row) => (what === 'markers' ? id(Number(row['id'])) : String(row[column]))),
  };
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
    const items = idsOf(18);
    const onPage = (pages: number): void => void (pages === 1 && CHANGES[change]?.(items));
    const { ended, ids } = await read(kind, { items, onPage, total });
    expect([total, ended.code, items.filter((one) => !ids.includes(one))]).toEqual([total, 0, []]);
    expect(ids).toHaveLength(new Set(ids).size);
  }
});

test('a list that moves each time it is read is not said to be whole', async () => {
  const items = idsOf(18);
  const onPage = (): void => void (items.shift(), items.push(id(1000 + Math.random() * 1e6)));
  const { ended } = await read('orders', { items, onPage });
  expect([ended.code, lastLine(ended)['incomplete']]).toEqual([3, [expect.stringContaining('moved')]]);
});

test('a list that grows in front all the time is whole', async () => {
  const [items, before] = [idsOf(18), idsOf(18)];
  const { ended, ids } = await read('orders', { items, onPage: (pages) => items.unshift(id(100 + pages)) });
  expect([ended.code, before.filter((one) => !ids.includes(one))]).toEqual([0, []]);
});

test('whatever comes and goes: who says that a list is whole has all that were there throughout', async () => {
  let whole = 0;
  for (let seed = 1; seed <= 40; seed += 1) {
    const random = seededRandom(seed);
    const below = (most: number): number => Math.floor(random() * most);
    const [items, total] = [idsOf(8 + below(20)), random() < 0.5];
    const stayed = new Set(items);
    const onPage = (pages: number): void => {
      if (random() < 0.6 || pages > 14) return;
      for (let change = below(3); change >= 0; change -= 1) {
        if (random() < 0.6) for (const gone of items.splice(below(items.length), 1)) stayed.delete(gone);
        if (random() < 0.6) items.splice(below(items.length), 0, id(1000 * pages + change));
      }
    };
    const { ended, ids } = await read(KINDS[seed % 4] ?? '', { items, onPage, total });
    const missed = [...stayed].filter((one) => !ids.includes(one));
    if (ended.code === 0) whole += 1;
    if (ended.code === 0) expect([seed, missed]).toEqual([seed, []]);
  }
  expect(whole).toBeGreaterThan(10);
});

test('a service with pages of its own size is read as it was, and a total that fell is told', async () => {
  for (const total of [true, false]) {
    const steady = await read('orders', { items: idsOf(18), onPage: () => undefined, total, fixed: true });
    expect([steady.ended.code, steady.ids]).toEqual([0, idsOf(18)]);
  }
  const items = idsOf(18);
  const onPage = (): void => void (items.length > 8 && items.shift());
  const { ended } = await read('orders', { items, onPage, fixed: true });
  expect([ended.code, ended.stderr]).toEqual([3, expect.stringContaining('incomplete')]);
});
