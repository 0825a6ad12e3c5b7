import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, type Ended } from '../../support/millrace.ts';
import { standIn, type StandIn } from './stand-in.ts';
import { lastLine, lines, rowIds } from './support.ts';

const RANGE = ['--since', '2026-01-01', '--until', '2026-01-31'];
const ALL = ['--all-users', ...RANGE];

interface Backfilled {
  readonly service: StandIn;
  readonly out: string;
  readonly run: (...args: readonly string[]) => Promise<Ended>;
  /** Ids of the rows of meals, and how many of items. */
  readonly rows: () => readonly [string[], number];
  /** Status and meals of each user. */
  readonly outcomes: () => (readonly [unknown, unknown])[];
}

async function backfilled(users: number): Promise<Backfilled> {
  const service = await standIn({ users });
  const out = await temporaryFolder();
  return {
    service,
    out,
    run: (...args) => millrace(['backfill', '--out', out, '--json', ...args], { env: service.env, cwd: out }),
    rows: () => [rowIds(join(out, 'meals.ndjson')), lines(join(out, 'meal_items.ndjson')).length],
    outcomes: () => lines(join(out, '_backfill.ndjson')).map(({ status, meals }) => [status, meals] as const),
  };
}

/** All meals of these users, and two items of each. */
const allOf = (service: StandIn, users?: readonly string[]): readonly [string[], number] => {
  const ids = service.mealIds(users);
  return [ids, 2 * ids.length];
};

test('a run again keeps the rows of those whom the service does not give now, and says so', async () => {
  const { service, run, rows, outcomes } = await backfilled(4);
  expect((await run(...ALL)).code).toBe(0);
  const [first = '', second = '', third = ''] = service.users;
  service.instead = (_, user) => (user === second || user === third ? 404 : null);
  for (let again = 0; again < 2; again += 1) {
    const ended = await run(...ALL);
    expect([ended.code, lastLine(ended)]).toEqual([
      3,
      expect.objectContaining({ failed_users: [second, third], kept_users: [second, third], meals: 20 }),
    ]);
    expect(ended.stderr).toContain(`the earlier rows stay: ${second}`);
    expect(rows()).toEqual(allOf(service));
    expect(outcomes()).toEqual([
      ['done', 5],
      ['failed', 5],
      ['failed', 5],
      ['done', 5],
    ]);
  }
  service.instead = (_, user) => (user === first ? '{"meals":[]}' : null);
  const ended = await run(...ALL);
  expect([ended.code, lastLine(ended)['emptied'], rows()]).toEqual([3, 15, allOf(service)]);
  expect(ended.stderr).toContain('15 rows kept: the service lists nothing now; --accept-empty removes them');
  expect((await run('--resume')).code).toBe(3);
  // What the service says there is not, is not.
  const accepted = await run('--resume', '--accept-empty');
  expect([accepted.code, rows()]).toEqual([0, allOf(service, service.users.slice(1))]);
});

test.each([
  ['in one go', false],
  ['resumed', true],
])('--replace keeps nothing, %s', async (how, isResumed) => {
  const { service, run, rows } = await backfilled(2);
  await run(...ALL);
  const [first = '', second = ''] = service.users;
  if (isResumed) {
    service.instead = (_, user) => (user === second ? 401 : null);
    expect((await run(...ALL, '--replace')).code).toBe(1);
  }
  service.instead = (_, user) => (user === second ? 404 : null);
  const ended = await run(...(isResumed ? ['--resume'] : [...ALL, '--replace']));
  expect([how, ended.code, lastLine(ended)['kept_users'], rows()]).toEqual([
    how,
    3,
    [],
    allOf(service, [first]),
  ]);
});

test('the rows of each provider are kept, or those of all when all are asked for now', async () => {
  const { service, run, rows } = await backfilled(2);
  const [first = '', second = ''] = service.users;
  await run(...ALL, '--provider', 'a', '--provider', 'b');
  const twice = [...service.mealIds(), ...service.mealIds()].toSorted();
  expect(rows()).toEqual([twice, 2 * twice.length]);
  service.instead = (_, user) => (user === second ? 404 : null);
  expect((await run(...ALL)).code).toBe(3);
  const wanted = [...service.mealIds([first]), ...service.mealIds([second]), ...service.mealIds([second])];
  expect(rows()).toEqual([wanted.toSorted(), 2 * wanted.length]);
});

test('more that was fetched is taken, and less is not', async () => {
  const { service, run, rows } = await backfilled(1);
  const [user = ''] = service.users;
  const days = ['--window', '1'];
  await run('--all-users', '--since', '2026-01-01', '--until', '2026-01-02');
  expect(rows()[0]).toHaveLength(2);
  // The last of five days fails, and then all but the first.
  let day = 0;
  service.instead = (path) => (path.startsWith('/v2/summary') && (day += 1) === 5 ? 404 : null);
  expect((await run(...ALL, ...days, '--concurrency', '1')).code).toBe(3);
  expect([rows()[0], service.mealIds().slice(0, 4)]).toEqual([service.mealIds().slice(0, 4), rows()[0]]);
  day = 0;
  service.instead = (path) => (path.startsWith('/v2/summary') && (day += 1) > 1 ? 404 : null);
  expect((await run(...ALL, ...days, '--concurrency', '1')).code).toBe(3);
  expect(rows()[0]).toEqual(service.mealIds([user]).slice(0, 4));
});

test('files that are not what is said of them are not touched', async () => {
  const { service, run, out } = await backfilled(2);
  await run(...ALL);
  const path = join(out, 'meals.ndjson');
  const fewer = readFileSync(path, 'utf8').split('\n').slice(1).join('\n');
  writeFileSync(path, fewer);
  service.instead = (_, user) => (user === service.users[0] ? 404 : null);
  const ended = await run(...ALL);
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining('9 rows')]);
  expect(readFileSync(path, 'utf8')).toBe(fewer);
});

test('--resume asks again for users who failed, and for no others', async () => {
  const { service, run, rows, outcomes, out } = await backfilled(3);
  const [first = '', second = ''] = service.users;
  service.instead = (_, user) => (user === second ? 404 : null);
  const ended = await run(...ALL);
  expect([ended.code, ended.stderr]).toEqual([3, expect.stringContaining('--resume')]);
  expect(outcomes()).toEqual([
    ['done', 5],
    ['failed', 0],
    ['done', 5],
  ]);
  expect((await run('--resume')).code).toBe(3);
  service.instead = () => null;
  expect((await run('--resume', ...RANGE)).code).toBe(0);
  expect([rows(), outcomes()]).toEqual([allOf(service), service.users.map(() => ['done', 5])]);
  expect([service.asked.get(first), existsSync(join(out, '_backfill'))]).toEqual([1, false]);
  expect(await run('--resume')).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('is complete') as string,
  });
});

test('--resume of what is complete removes what a run has left that was killed while it removed it', async () => {
  const { run, out } = await backfilled(1);
  await run(...ALL);
  mkdirSync(join(out, '_backfill/left'), { recursive: true });
  writeFileSync(join(out, '_backfill/left/meals.ndjson'), '{}\n');
  const ended = await run('--resume');
  expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining('is complete')]);
  expect(existsSync(join(out, '_backfill'))).toBe(false);
});

test('a run again after one with failures begins again, and refuses to fetch less', async () => {
  const { service, run, rows } = await backfilled(3);
  service.instead = (_, user) => (user === service.users[1] ? 404 : null);
  expect((await run(...ALL)).code).toBe(3);
  const less = await run('--user', service.users[0] ?? '', ...RANGE);
  expect([less.code, less.stderr]).toEqual([2, expect.stringContaining('other user')]);
  service.instead = () => null;
  expect((await run(...ALL)).code).toBe(0);
  expect([rows(), service.asked.get(service.users[0] ?? '')]).toEqual([allOf(service), 2]);
});
