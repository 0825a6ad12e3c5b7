import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Checkpoint } from '../../../src/history/backfill/checkpoint.ts';
import { refuseLoss } from '../../../src/history/backfill/outcomes.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { writeConfig } from '../../support/millrace.ts';
import { Receiver } from '../../support/receiver.ts';
import { backfill, lines, sandbox } from './support.ts';

test('a finished backfill is not replaced by one that fetches less', async () => {
  const service = await sandbox({ users: 3 });
  const [a, b] = service.state.users.list(service.teamId).map(({ id }) => id) as [string, string];
  const out = await temporaryFolder();
  const run = (...args: string[]) => backfill(service, out, ...args);
  const asked = ['--since', '2026-01-01', '--until', '2026-01-09'];
  expect((await run('--user', a, ...asked)).code).toBe(0);
  const before = readFileSync(join(out, 'meals.ndjson'));
  for (const [said, ...args] of [
    ['of 1 other user', '--user', b, ...asked],
    ['of all providers', '--user', a, '--provider', 'made_up', ...asked],
    ['from 2026-01-01', '--user', a, '--since', '2026-01-02', '--until', '2026-01-09'],
    ['until 2026-01-09', '--all-users', '--since', '2026-01-01', '--until', '2026-01-08'],
  ] as const) {
    const ended = await run(...args);
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(said)]);
    expect(readFileSync(join(out, 'meals.ndjson'))).toEqual(before);
  }
  const usersIn = () => new Set(lines(join(out, 'meals.ndjson')).map((row) => row['user_id']));
  expect((await run('--user', a, '--user', b, ...asked)).code).toBe(0);
  expect(usersIn()).toEqual(new Set([a, b]));
  expect((await run('--user', b, ...asked, '--replace')).code).toBe(0);
  expect(usersIn()).toEqual(new Set([b]));
  // A user whom the service no longer has is none that is lost.
  const gone = service.state.users.list(service.teamId).find(({ id }) => id === b);
  if (gone !== undefined) service.state.users.delete(gone);
  expect((await run('--all-users', ...asked)).code).toBe(0);
  expect(usersIn().has(b)).toBe(false);
});

test('a finished backfill of which something is gone is neither complete nor a folder without rows', async () => {
  const service = await sandbox({ users: 3 });
  const out = await temporaryFolder();
  const range = ['--all-users', '--since', '2026-01-01', '--until', '2026-01-09'];
  const run = (...args: string[]) => backfill(service, out, ...range, ...args);
  expect((await run()).code).toBe(0);
  const said = async (...args: string[]): Promise<[number | null, string]> => {
    const { code, stderr } = await run(...args);
    return [code, stderr];
  };
  expect(await said('--resume')).toEqual([0, expect.stringContaining('nothing to resume')]);
  const damage: [file: string, keep: (text: string) => string | null, says: string][] = [
    ['meals.ndjson', () => null, 'has 0 rows'],
    ['meal_items.ndjson', (text) => text.slice(0, -100), 'has '],
    ['_pulls.ndjson', () => null, 'is not there'],
    ['_backfill.ndjson', () => '', 'is empty'],
  ];
  for (const [file, keep, says] of damage) {
    const [path, whole] = [join(out, file), readFileSync(join(out, file), 'utf8')];
    const kept = keep(whole);
    if (kept === null) rmSync(path);
    else writeFileSync(path, kept);
    expect(await said('--resume')).toEqual([1, expect.stringContaining(`${path} ${says}`) as string]);
    writeFileSync(path, whole);
  }
  // Its rows of a user who fails now would be lost: which these are is not known.
  writeFileSync(join(out, '_backfill.ndjson'), '');
  expect(await said()).toEqual([2, expect.stringContaining('put it back')]);
  rmSync(join(out, '_backfill.ndjson'));
  const meals = readFileSync(join(out, 'meals.ndjson'));
  for (const args of [[], ['--resume']])
    expect(await said(...args)).toEqual([2, expect.stringContaining('put it back')]);
  expect(readFileSync(join(out, 'meals.ndjson'))).toEqual(meals);
  expect((await run('--replace')).code).toBe(0);
  expect(await said('--resume')).toEqual([0, expect.stringContaining('nothing to resume')]);
});

test('the receiver shows how many requests a finished backfill has sent', async () => {
  const [service, out, folder] = [
    await sandbox({ users: 3 }),
    await temporaryFolder(),
    await temporaryFolder(),
  ];
  const config = writeConfig(folder);
  const receiver = await Receiver.start(config);
  const asked = ['--all-users', '--since', '2026-01-01', '--until', '2026-01-09'];
  expect((await backfill(service, out, '--config', config, ...asked)).code).toBe(0);
  const { answer } = await receiver.call('/api/activities');
  expect(answer).toMatchObject([{ kind: 'backfill', state: 'done', done: 3, total: 3, unit: 'requests' }]);
});

test('whom an erasure has taken is none that is lost', async () => {
  const folder = await temporaryFolder();
  const line = { user_id: 'user-1', provider: null, since: '2026-01-01', until: '2026-01-09', meals: 3 };
  writeFileSync(join(folder, '_backfill.ndjson'), `${JSON.stringify(line)}\n`);
  const plan = { users: ['user-2'], providers: [], since: '2026-01-02', until: '2026-01-09', windowDays: 0 };
  const refused = (erased: string): void =>
    refuseLoss(folder, { plan, isOfAll: false, isErased: (user) => user === erased });
  expect(() => refused('user-3')).toThrow('of 1 other user');
  expect(() => refused('user-1')).not.toThrow();
});

test('files of another format are refused', async () => {
  const folder = await temporaryFolder();
  const plan = { users: ['user-2'], providers: [], since: '2026-01-02', until: '2026-01-09', windowDays: 0 };
  mkdirSync(join(folder, '_backfill'));
  writeFileSync(join(folder, '_backfill', 'state.json'), JSON.stringify({ plan, run: 'a1', triggered: {} }));
  expect(() => Checkpoint.planOf(folder)).toThrow('state.json is of another format');
  const line = { user_id: 'user-1', provider: null, meals: 3 };
  writeFileSync(join(folder, '_backfill.ndjson'), `${JSON.stringify(line)}\n`);
  const fetches = { plan, isOfAll: false, isErased: () => false };
  expect(() => refuseLoss(folder, fetches)).toThrow('_backfill.ndjson is not of a backfill');
});
