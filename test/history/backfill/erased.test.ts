import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ErasureResult } from '../../../src/core/erasure.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import { standIn } from './stand-in.ts';
import { environment, rowIds, sandbox } from './support.ts';

const RANGE = ['--since', '2026-01-01', '--until', '2026-01-10'];

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));

test('an erasure finds a user in what backfill, pull and reconcile have written, wherever that is', async () => {
  const folder = await temporaryFolder();
  const service = await sandbox({ users: 3 });
  const config = writeConfig(folder);
  const run = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await millrace([...args, '--config', config], {
      env: environment(service),
    });
    expect([0, 3, 4], stderr).toContain(code);
    return stdout;
  };
  const out = (name: string): string => join(folder, 'elsewhere', name);
  await run('backfill', '--all-users', '--out', out('history'), ...RANGE);
  await run('pull', 'users', '--all-users', '--out', out('reference'));
  const [user = '', other = ''] = service.state.users.list(service.teamId).map(({ id }) => id);
  await run('reconcile', '--service', '--user', user, '--user', other, ...RANGE, '--fill', out('missing'));
  // Refused before it makes its folder: nothing waits for that.
  const never = ['--out', join(config, 'never'), '--config', config];
  for (const args of [
    ['backfill', '--all-users', ...RANGE],
    ['pull', 'users', '--all-users'],
  ])
    expect(await millrace([...args, ...never], { env: environment(service) })).toMatchObject({ code: 1 });
  const bytes = (): string =>
    ['history', 'reference', 'missing']
      .flatMap((name) => filesIn(out(name)))
      .map((file) => readFileSync(file, 'utf8'))
      .join('');
  for (const id of [user, other]) expect(bytes()).toContain(id);
  const { receipts, left } = JSON.parse(await run('erase', user, '--now', '--json')) as ErasureResult;
  expect(left).toEqual([]);
  expect(receipts[0]?.stores).toEqual(expect.arrayContaining(['history', 'reference', 'missing'].map(out)));
  expect(bytes()).not.toContain(user);
  expect(bytes()).toContain(other);
});

test('an erasure finds a user in the state of a run whose pulls failed', async () => {
  const folder = await temporaryFolder();
  const service = await standIn({ users: 3, meals: 0 });
  const [first = '', user = ''] = service.users;
  const config = writeConfig(folder);
  const run = (...args: string[]) => millrace([...args, '--config', config], { env: service.env });
  const backfill = (name: string, ...args: string[]) =>
    run('backfill', '--out', join(folder, name), '--poll', '5ms', ...args);
  const begin = ['--all-users', '--provider', 'made_up', ...RANGE];
  service.onTrigger = ({ users }) => {
    for (const one of users) service.pulls.set(one, { status: one === user ? 'failure' : 'success' });
  };
  for (const [name, how] of [
    ['history', '--trigger'],
    ['pull', '--trigger-only'],
  ] as const) {
    expect((await backfill(name, ...begin, how)).code).toBe(3);
    service.onLook = () => (service.ops.length % 2 === 0 ? 401 : undefined);
    expect((await backfill(name, '--resume')).code).toBe(1);
    service.onLook = () => undefined;
  }
  const bytes = (): string[] =>
    ['history', 'pull'].map((name) => readFileSync(join(folder, name, '_backfill/state.json'), 'utf8'));
  for (const state of bytes()) expect(state.split(user).length - 1).toBe(3);
  expect((await run('erase', user, '--now')).code).toBe(0);
  for (const state of bytes()) expect([state.includes(user), state.includes(first)]).toEqual([false, true]);
  for (const name of ['history', 'pull']) expect((await backfill(name, '--resume')).code).toBe(0);
  expect(service.ops.filter(({ users }) => users.includes(user))).toHaveLength(4);
});

test.each([
  ['a bare --resume', false],
  ['--resume with the same users', true],
])('who was erased since a run began is not fetched by %s, wherever the run lies', async (how, isNamed) => {
  const folder = await temporaryFolder();
  const service = await standIn({ users: 3 });
  const [first = '', user = '', third = ''] = service.users;
  const config = writeConfig(folder);
  const out = join(folder, 'history');
  const run = (...args: string[]) => millrace(args, { env: service.env, cwd: folder });
  service.instead = (_, asked) => (asked === user ? 401 : null);
  // Without a config no erasure knows where it is.
  expect((await run('backfill', '--all-users', '--out', out, ...RANGE)).code).toBe(1);
  expect((await run('erase', user, '--now', '--config', config)).code).toBe(0);
  service.instead = () => null;
  service.asked.clear();
  const named = isNamed ? [...service.users.flatMap((one) => ['--user', one]), ...RANGE] : [];
  const resumed = await run('backfill', '--resume', '--out', out, '--config', config, ...named);
  expect([how, resumed.code, resumed.stderr]).toEqual([
    how,
    0,
    expect.stringContaining('left out: 1 erased user'),
  ]);
  expect(service.asked.has(user)).toBe(false);
  expect(rowIds(join(out, 'meals.ndjson'))).toEqual(service.mealIds([first, third]));
  expect(filesIn(out).filter((file) => readFileSync(file, 'utf8').includes(user))).toEqual([]);
});

test('what was fetched of who is erased goes when the run is resumed, also where others fail again', async () => {
  const folder = await temporaryFolder();
  const service = await standIn({ users: 3 });
  const [, user = '', third = ''] = service.users;
  const config = writeConfig(folder);
  const out = join(folder, 'history');
  const run = (...args: string[]) => millrace(args, { env: service.env, cwd: folder });
  service.instead = (_, asked) => (asked === third ? 404 : null);
  const naming = (): string[] =>
    filesIn(join(out, '_backfill')).filter((file) => readFileSync(file, 'utf8').includes(user));
  expect((await run('backfill', '--all-users', '--out', out, ...RANGE)).code).toBe(3);
  expect(naming()).not.toEqual([]);
  expect((await run('erase', user, '--now', '--config', config)).code).toBe(0);
  const resumed = await run('backfill', '--resume', '--out', out, '--config', config, '--json');
  expect([resumed.code, JSON.parse(resumed.stdout.trim().split('\n').at(-1) ?? '')]).toEqual([
    3,
    expect.objectContaining({ users: 2, failed_users: [third] }),
  ]);
  expect(naming()).toEqual([]);
});
