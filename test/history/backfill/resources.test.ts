import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, type Ended } from '../../support/millrace.ts';
import { fetchTask } from '../../../src/history/backfill/fetch-task.ts';
import { RESOURCES, tablesOf, type HistoryResource } from '../../../src/history/resources.ts';
import { TABLES } from '../../../src/tables/tables.ts';
import { ServiceClient } from '../../../src/history/service/client.ts';
import { dataService, samplesOf, sleepOf, type DataService } from './data-service.ts';
import { lastLine, lines } from './support.ts';

const RANGE = ['--since', '2026-01-01', '--until', '2026-01-31'];

interface Backfilled {
  readonly service: DataService;
  readonly out: string;
  readonly run: (...args: readonly string[]) => Promise<Ended>;
  /** A member of each row of a table. */
  readonly column: (table: string, name: string) => unknown[];
  /** Lines of `_pulls.ndjson`. */
  readonly pulls: () => Record<string, unknown>[];
}

async function backfilled(users: number): Promise<Backfilled> {
  const service = await dataService(users);
  for (const user of service.users) {
    service.items.set(`${user} sleep`, sleepOf(user, 5));
    service.items.set(`${user} heartrate`, samplesOf(11));
    service.items.set(`${user} steps`, samplesOf(3));
    service.items.set(`${user} profile`, [{ id: `${user}-profile`, user_id: user, height: 180 }]);
  }
  const out = await temporaryFolder();
  const pulls = join(out, '_pulls.ndjson');
  return {
    service,
    out,
    run: (...args) =>
      millrace(['backfill', '--out', out, '--json', '--all-users', ...RANGE, ...args], {
        env: service.env,
        cwd: out,
      }),
    column: (table, name) => lines(join(out, `${table}.ndjson`)).map((row) => row[name]),
    pulls: () => (existsSync(pulls) ? lines(pulls) : []),
  };
}

test('summaries, series and an object of each user become rows of their tables', async () => {
  const { service, out, run, column } = await backfilled(2);
  const ended = await run('--resource', 'sleep,heartrate', '--resource', 'steps,profile');
  expect(ended.code, ended.stderr).toBe(0);
  expect(lastLine(ended)).toMatchObject({ rows: { sleep: 10, timeseries: 28, profiles: 2 }, rejects: 0 });
  expect(column('sleep', 'id')).toEqual(
    service.users.flatMap((user) => sleepOf(user, 5).map(({ id }) => id)),
  );
  expect(column('profiles', 'height')).toEqual([180, 180]);
  const samples = lines(join(out, 'timeseries.ndjson'));
  const wanted = service.users.flatMap((user_id) =>
    [['heartrate', 11] as const, ['steps', 3] as const].flatMap(([resource, count]) =>
      samplesOf(count).map(({ value }) => ({ user_id, resource, value, source_provider: 'made_up' })),
    ),
  );
  expect(samples).toMatchObject(wanted);
  expect(lines(join(out, '_backfill.ndjson')).slice(0, 4)).toMatchObject([
    { resource: 'heartrate', status: 'done', timeseries: 11, rejects: 0 },
    { resource: 'profile', profiles: 1 },
    { resource: 'sleep', sleep: 5 },
    { resource: 'steps', timeseries: 3 },
  ]);
});

const idsOf = (service: DataService): unknown[] =>
  service.users.flatMap((user) => service.items.get(`${user} sleep`) ?? []).map(({ id }) => id);
const pulled = (status: string) => ({ pulled: { sleep: { status } } });

test.each([
  ['success', 2],
  ['in_progress', 1],
] as const)(
  'the service is asked about pulls again only where one had settled: %s',
  async (status, times) => {
    const { service, run } = await backfilled(1);
    for (const user of service.users) service.pulls.set(user, pulled(status));
    await run('--resource', 'sleep');
    expect(service.asked.filter((path) => path.includes('historical_pull'))).toHaveLength(times);
  },
);

test('a resource is named as it is known; another one with the nearest', async () => {
  const { run } = await backfilled(1);
  const near = { slep: 'sleep', heart_rate: 'heartrate', body_fat: 'body' };
  for (const [name, meant] of Object.entries(near)) {
    const { code, stderr } = await run('--resource', `meal,${name}`);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${name}; did you mean ${meant}?`)]);
  }
  expect((await run('--resource', 'all', '--dry-run')).stdout).toContain(`"tasks":${RESOURCES.size}`);
  for (const one of RESOURCES.values()) expect(tablesOf(one)).toEqual(TABLES.withNested(one.table));
});

test('a pull that is whole is named, with the time before its first request', async () => {
  const { service, run, column, pulls } = await backfilled(1);
  const [user_id = ''] = service.users;
  service.pulls.set(user_id, { ...pulled('success'), not_pulled: ['workout_stream'] });
  const first: number[] = [];
  service.onRequest = (path) => void (path.startsWith('/v2/summary') && first.push(Date.now()));
  expect((await run('--resource', 'sleep,profile,steps')).code).toBe(0);
  const line = {
    user_id,
    provider: null,
    since: '2026-01-01',
    until: '2026-01-31',
    began_at: expect.any(String) as string,
  };
  // The profile is one of those that the user's providers may have.
  expect(pulls()).toEqual([
    { ...line, resource: 'sleep', table: 'sleep', items: 5 },
    { ...line, resource: 'steps', table: 'timeseries', items: 3 },
  ]);
  expect(Date.parse(String(pulls()[0]?.['began_at']))).toBeLessThanOrEqual(Math.min(...first));
  expect(column('sleep', '_loaded_at')).toEqual(
    pulls().flatMap(({ began_at, items }) => (items === 5 ? Array(5).fill(began_at) : [])),
  );
  expect((await run('--resource', 'profile', '--provider', 'made_up', '--replace')).code).toBe(0);
  expect(pulls()).toEqual([
    {
      ...line,
      provider: 'made_up',
      resource: 'profile',
      table: 'profiles',
      items: 1,
      since: null,
      until: null,
    },
  ]);
  expect((await run('--resource', 'sleep', '--replace', '--loaded-at', '2999-01-01T00:00:00Z')).code).toBe(0);
  expect(Date.parse(String(pulls()[0]?.['began_at']))).toBeLessThanOrEqual(Date.now());
});

/** The path has that word: its answer. */
const at =
  (word: string, said: number | string): DataService['instead'] =>
  (path) =>
    path.includes(word) ? said : null;

test.each<readonly [string, number, (service: DataService, user: string) => void]>([
  ['the service has no such user', 3, (service) => (service.instead = at('summary', 404))],
  ['it answers a part', 3, (service) => (service.instead = at('summary', 206))],
  ['it says that more follows', 3, (service) => (service.instead = at('summary', '{"sleep":[],"next":"x"}'))],
  ['it does not say what it has pulled', 0, (service) => (service.instead = at('introspect', 404))],
  ['it has not pulled', 0, ({ pulls }, user) => pulls.set(user, { pulled: {}, not_pulled: ['sleep'] })],
  ['its pull has failed', 0, ({ pulls }, user) => pulls.set(user, pulled('failure'))],
  ['its pull ends while it is read', 0, (service, user) => changing(service, user, 'retrying', 'success')],
  [
    'its pull begins while it is read',
    0,
    (service, user) => changing(service, user, 'success', 'in_progress'),
  ],
  ['it lists nothing', 0, ({ items }, user) => items.delete(`${user} sleep`)],
])('a pull is not whole when %s', async (_, code, change) => {
  const { service, run, pulls } = await backfilled(1);
  change(service, service.users[0] ?? '');
  expect([(await run('--resource', 'sleep')).code, pulls()]).toEqual([code, []]);
});

function changing(service: DataService, user: string, before: string, after: string): void {
  service.pulls.set(user, pulled(before));
  service.onRequest = (path) => void (path.includes('summary') && service.pulls.set(user, pulled(after)));
}

test('what has vanished goes, and what an empty list has taken stays until it is accepted', async () => {
  const { service, run, column, pulls } = await backfilled(3);
  const [first = '', second = '', third = ''] = service.users;
  const before = sleepOf(first, 1).map((item) => ({ ...item, id: 'before', calendar_date: '2025-12-31' }));
  const after = sleepOf(first, 1).map((item) => ({ ...item, id: 'after', calendar_date: '2026-02-01' }));
  const last = sleepOf(first, 1).map((item) => ({ ...item, id: 'last', calendar_date: '2026-01-31' }));
  service.items.set(`${first} sleep`, [...before, ...sleepOf(first, 5), ...last, ...after]);
  expect((await run('--resource', 'sleep,steps')).code).toBe(0);
  expect(column('sleep', 'id').slice(0, 6)).toEqual([...sleepOf(first, 5), ...last].map(({ id }) => id));
  // The items at the edges of the range go, and one in between.
  service.items.set(
    `${first} sleep`,
    sleepOf(first, 5).filter((__, n) => n !== 0 && n !== 2),
  );
  service.items.set(`${second} sleep`, []);
  service.instead = (path) => (path.includes(`sleep/${third}`) ? 404 : null);
  const ended = await run('--resource', 'sleep,steps');
  expect([ended.code, lastLine(ended)['emptied']]).toEqual([3, 5]);
  expect(ended.stderr).toContain('5 rows kept');
  service.instead = () => null;
  const kept = [second, third].flatMap((user) => sleepOf(user, 5).map(({ id }) => id));
  const left = (service.items.get(`${first} sleep`) ?? []).map(({ id }) => id);
  expect(column('sleep', 'id')).toEqual([...left, ...kept]);
  expect(column('timeseries', 'value')).toHaveLength(9);
  expect(pulls().filter(({ table }) => table === 'sleep')).toMatchObject([{ user_id: first, items: 3 }]);
  const accepted = await run('--resource', 'sleep,steps', '--accept-empty');
  expect([accepted.code, column('sleep', 'id')]).toEqual([0, idsOf(service)]);
  const counts = pulls().flatMap(({ table, items }) => (table === 'sleep' ? items : []));
  expect(counts).toEqual([3, 0, 5]);
});

test.each([
  ['users', 'sleep --all-users', 'sleep --user 00000000-0000-4000-8000-000000000001', 'other user'],
  ['resources', 'sleep,steps --all-users', 'sleep --all-users', 'of other resources (steps)'],
  [
    'providers',
    'sleep --all-users --provider a --provider b',
    'sleep --all-users --provider a',
    'providers (b)',
  ],
  ['days', 'sleep --all-users', 'sleep --all-users --since 2026-01-02', 'from 2026-01-01'],
])('rows of other %s stay: the command that does not fetch them is refused', async (_, had, asked, said) => {
  const { service, out, column } = await backfilled(2);
  const run = (args: string): Promise<Ended> =>
    millrace(['backfill', '--out', out, ...RANGE, '--resource', ...args.split(' ')], {
      env: service.env,
      cwd: out,
    });
  await run(had);
  const rows = column('sleep', 'id');
  const ended = await run(asked);
  expect([ended.code, ended.stderr, column('sleep', 'id')]).toEqual([2, expect.stringContaining(said), rows]);
});

test.each<readonly [string, string | number, string]>([
  ['a page that is cut', '{"groups":{"made_up":[{"source":{},"data":[{"timestamp":"2026-01-02', 'cut short'],
  ['a page that is cut behind its cursor', '{"next":"8","groups":{"made_up":[', 'cut short'],
  ['a cursor that leads back', '{"groups":{},"next_cursor":"4"}', 'names the cursor 4 twice'],
  ['a page without groups', '{"next_cursor":null}', 'page 2 (cursor 4), has no list groups'],
  ['a page that is a bare list', '[]', 'page 2 (cursor 4), is not an object'],
  ['a page with an error', '{"groups":{},"error":"made up"}', 'has "error" beside its list'],
  ['an empty page', '', 'was empty'],
  ['a page that is refused', 404, 'not_found'],
])('%s ends a series with an error, and leaves no rows', async (_, instead, said) => {
  const { service, out } = await backfilled(1);
  service.instead = (_path, cursor) => (cursor === '4' ? instead : null);
  const baseUrl = service.env['MILLRACE_SERVICE_BASE_URL'] ?? '';
  const client = new ServiceClient({ baseUrl, apiKey: 'made-up' });
  const [user = ''] = service.users;
  const resource = RESOURCES.get('heartrate') as HistoryResource;
  const task = { user, resource, provider: null, start: '2026-01-01', end: '2026-01-31' };
  await expect(fetchTask(client, task, out, AbortSignal.timeout(60_000))).rejects.toThrow(said);
  expect(existsSync(join(out, 'timeseries.ndjson'))).toBe(false);
  await client.close();
});

test.each(['[]', '[{"id":"made up"}]'])(
  '%s instead of an object is an error, and not an item that is not there',
  async (body) => {
    const { service, out } = await backfilled(1);
    service.instead = () => body;
    const client = new ServiceClient({
      baseUrl: service.env['MILLRACE_SERVICE_BASE_URL'] ?? '',
      apiKey: 'made-up',
    });
    const [user = ''] = service.users;
    const resource = RESOURCES.get('profile') as HistoryResource;
    const task = { user, resource, provider: null, start: '2026-01-01', end: '2026-01-31' };
    const said = `the answer for ${user} is not an object`;
    await expect(fetchTask(client, task, out, AbortSignal.timeout(60_000))).rejects.toThrow(said);
    await client.close();
  },
);
