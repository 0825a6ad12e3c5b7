import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, test, vi } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { describeOnStores } from '../../support/object-stores/emulators.ts';
import { standIn } from './stand-in.ts';
import { backfill, environment, lastLine, lines, mealIds, rowIds, sandbox } from './support.ts';

const RANGE = { since: '2026-01-01', until: '2026-01-10', provider: 'made_up' };
const FLAGS = ['--all-users', '--provider', 'made_up', '--since', RANGE.since, '--until', RANGE.until];
const SHARDS = ['shard-1-of-3', 'shard-2-of-3', 'shard-3-of-3'];

afterEach(() => vi.unstubAllEnvs());

describe('a backfill in shards', () => {
  test('all at once: each user and meal is in one of them, and the summary adds them up', async () => {
    const service = await sandbox({ users: 12 });
    const users = service.state.users.list(service.teamId).map(({ id }) => id);
    const out = await temporaryFolder();
    const env = environment(service);
    const run = (n: number) => millrace(['backfill', '--out', out, ...FLAGS, '--shard', `${n}/3`], { env });
    const ends = await Promise.all([1, 2, 3].map(run));
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
    const rows = SHARDS.flatMap((shard) => rowIds(join(out, shard, 'meals.ndjson')));
    expect(rows.toSorted()).toEqual(await mealIds(service, RANGE));
    const fetched = SHARDS.map((shard) =>
      lines(join(out, shard, '_backfill.ndjson')).map((line) => line['user_id']),
    );
    expect(fetched.flat().map(String).toSorted()).toEqual(users.toSorted());
    expect(Math.max(...fetched.map(({ length }) => length))).toBeLessThan(12);
    const summary = await backfill(service, out, '--summary');
    expect([summary.code, lastLine(summary)]).toMatchObject([
      0,
      { ok: true, shards: 3, incomplete: [], users: 12, meals: rows.length, outcomes: { done: 12 } },
    ]);
    // A user is in the same shard, whatever the other users.
    const file = join(out, 'two.txt');
    const two = fetched[1]?.slice(0, 2).map(String) ?? [];
    writeFileSync(file, two.join('\n'));
    const other = await temporaryFolder();
    const again = ['--users-file', file, ...FLAGS.slice(1), '--shard', '2/3'];
    expect(lastLine(await backfill(service, other, ...again))).toMatchObject({ users: two.length });
  });

  test('the summary names the command that gets those who failed', async () => {
    const service = await standIn({ users: 6 });
    const out = join(await temporaryFolder(), "a place's name");
    const run = (...args: readonly string[]) => millrace(['backfill', ...args], service);
    service.instead = (_, user) => (user === service.users[2] ? 404 : null);
    for (const shard of ['1/2', '2/2']) await run('--out', out, ...FLAGS, '--shard', shard);
    const { code, stderr } = await run('--out', out, '--summary');
    const [, folder = '', command = ''] =
      /^users failed in (shard-[12]-of-2) \(millrace backfill (.+) asks again\)$/m.exec(stderr) ?? [];
    expect([code, command]).toEqual([3, `--resume --out '${out.replace("'", "'\\''")}/${folder}'`]);
    service.instead = () => null;
    // As a shell reads it.
    const args = execFileSync('sh', ['-c', `printf '%s\\n' ${command}`], { encoding: 'utf8' }).trim();
    expect((await run(...args.split('\n'))).code).toBe(0);
    expect((await run('--out', out, '--summary')).code).toBe(0);
  });

  test('one that is not there, or not complete, is named; those of another number of shards are refused', async () => {
    const service = await sandbox({ users: 4 });
    const out = await temporaryFolder();
    await backfill(service, out, ...FLAGS, '--shard', '1/3');
    await backfill(service, out, ...FLAGS, '--shard', '3/3');
    const summary = await backfill(service, out, '--summary');
    expect([summary.code, lastLine(summary)]).toMatchObject([3, { ok: false, incomplete: ['shard-2-of-3'] }]);
    expect(summary.stderr).toContain('not complete: shard-2-of-3');
    rmSync(join(out, 'shard-3-of-3', '_backfill.ndjson'));
    expect(lastLine(await backfill(service, out, '--summary'))).toMatchObject({
      incomplete: ['shard-2-of-3', 'shard-3-of-3'],
    });
    await backfill(service, out, ...FLAGS, '--shard', '2/2');
    const mixed = await backfill(service, out, '--summary');
    expect([mixed.code, mixed.stderr]).toEqual([
      2,
      expect.stringMatching(/shard-2-of-2.*keep each in its own folder/),
    ]);
  });

  test('the history is pulled once for all of them, and none may have it pulled', async () => {
    const service = await sandbox({
      users: 6,
      speed: 100_000,
      data: 'after_pull',
      faults: { unconnectedUsers: 1 },
    });
    const out = await temporaryFolder();
    const refused = await backfill(service, out, ...FLAGS, '--trigger', '--shard', '1/2');
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--trigger-only')]);
    const pulled = await backfill(service, out, ...FLAGS, '--trigger-only', '--poll', '50ms');
    expect([pulled.code, lastLine(pulled)]).toEqual([
      0,
      {
        ok: true,
        users: 6,
        connections: 6,
        pulled: 5,
        failed: 0,
        not_connected: 1,
        not_pulled: 0,
        unpulled: [],
      },
    ]);
    expect(service.state.bulkOps.list(service.teamId)).toHaveLength(1);
    for (const shard of ['1/2', '2/2']) await backfill(service, out, ...FLAGS, '--shard', shard);
    const ids = ['shard-1-of-2', 'shard-2-of-2'].flatMap((shard) => rowIds(join(out, shard, 'meals.ndjson')));
    expect(ids.length).toBeGreaterThan(0);
    expect(ids.toSorted()).toEqual(await mealIds(service, RANGE));
  });

  test('a pod of an indexed Job takes its number from its index, and paces its share of the rate', async () => {
    const service = await sandbox({ users: 4 });
    const cwd = await temporaryFolder();
    const run = (index: string | undefined, ...args: string[]) =>
      millrace(['backfill', '--out', cwd, ...FLAGS, '--resume', ...args], {
        env: { ...environment(service), ...(index === undefined ? {} : { JOB_COMPLETION_INDEX: index }) },
        cwd,
      });
    expect((await run('1', '--shard', 'job/2', '--max-rate', '1000')).code).toBe(0);
    expect(readFileSync(join(cwd, 'shard-2-of-2', 'meals.ndjson'), 'utf8')).not.toBe('');
    for (const [index, shard, said] of [
      [undefined, 'job/2', 'needs JOB_COMPLETION_INDEX'],
      ['2', 'job/2', 'must be from 1/2 to 2/2'],
      ['0', '0/2', 'must be from 1/2 to 2/2'],
      ['0', '2', 'must be like 3/16'],
    ] as const)
      expect(await run(index, '--shard', shard)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(said),
      });
  });

  test('the same command again continues with the users and days of its beginning', async () => {
    const service = await sandbox({ users: 3 });
    const env = environment(service);
    const out = await temporaryFolder();
    const command = ['backfill', '--out', out, '--all-users', '--since', RANGE.since, '--resume', '--json'];
    const run = () => millrace([...command, '--shard', '1/1'], { env });
    // After the list of users, and that of their pulls.
    service.state.faults.next(null, null, {
      kind: 'answer',
      status: 403,
      headers: {},
      body: { detail: 'made up' },
    });
    expect((await run()).code).toBe(1);
    const state = join(out, 'shard-1-of-1', '_backfill', 'state.json');
    const plan = JSON.parse(readFileSync(state, 'utf8')) as { plan: { until: string } };
    // As it would be on the next day.
    writeFileSync(state, JSON.stringify({ ...plan, plan: { ...plan.plan, until: '2026-01-09' } }));
    service.state.users.create(service.teamId, 'made-up-new');
    const ended = await run();
    expect([ended.code, ended.stderr, lastLine(ended)]).toMatchObject([0, expect.any(String), { users: 3 }]);
    const done = await run();
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('nothing to resume')]);
  });
});

describeOnStores(
  ' as the place of shards',
  (emulator) => {
    it('a summary of those whose files are all put', async () => {
      const service = await sandbox({ users: 4 });
      const url = `${await emulator.bucket('shards')}/history`;
      const env = {
        ...environment(service),
        AWS_ENDPOINT_URL_S3: emulator.url,
        AWS_REGION: 'us-east-1',
        AWS_ACCESS_KEY_ID: 'made-up',
        AWS_SECRET_ACCESS_KEY: 'made-up',
      };
      for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
      const cwd = await temporaryFolder();
      const run = (...args: string[]) =>
        millrace(['backfill', '--out', url, '--json', ...args], { env, cwd });
      expect((await run(...FLAGS, '--shard', '1/2')).code).toBe(0);
      expect(lastLine(await run('--summary'))).toMatchObject({ ok: false, incomplete: ['shard-2-of-2'] });
      expect((await run(...FLAGS, '--shard', '2/2')).code).toBe(0);
      const meals = (await mealIds(service, RANGE)).length;
      expect(lastLine(await run('--summary'))).toMatchObject({ ok: true, shards: 2, users: 4, meals });
    });
  },
  ['s3'],
);
