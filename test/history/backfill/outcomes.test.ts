import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makePlan } from '../../../src/history/backfill/plan.ts';
import { runBackfill } from '../../../src/history/backfill/run.ts';
import { parseDuration } from '../../../src/lib/units.ts';
import type { Sandbox } from '../../../src/sandbox/start.ts';
import { ServiceClient } from '../../../src/history/service/client.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { backfill, lastLine, lines, mealIds, rowIds, sandbox } from './support.ts';

const RANGE = { since: '2026-01-01', until: '2026-01-10', provider: 'made_up' };
const FLAGS = ['--all-users', '--provider', 'made_up', '--since', RANGE.since, '--until', RANGE.until];
const TRIGGER = ['--trigger', '--poll', '50ms'];
const SPEED = 100_000;

const usersOf = ({ state, teamId }: Sandbox): string[] => state.users.list(teamId).map(({ id }) => id);
const opsOf = ({ state, teamId }: Sandbox) => state.bulkOps.list(teamId);

async function* noOps(): AsyncGenerator<never> {}

/** Users by the outcome that the file of outcomes gives them. */
function byStatus(out: string): Record<string, string[]> {
  const outcomes = lines(join(out, '_backfill.ndjson'));
  const all: Record<string, string[]> = {};
  for (const { user_id: user, status } of outcomes) (all[String(status)] ??= []).push(String(user));
  return all;
}

describe('users whom the service does not pull are an outcome, not a wait', () => {
  test('without a connection, left out of the operation, and with meals not pulled: counted, named, without rows', async () => {
    const faults = {
      unconnectedUsers: 3,
      leftOutUsers: 2,
      unpulledUsers: 1,
      failingUsers: 1,
      retryingUsers: 1,
    };
    const service = await sandbox({ users: 12, speed: SPEED, data: 'after_pull', faults });
    const out = await temporaryFolder();
    const ended = await backfill(service, out, ...FLAGS, ...TRIGGER);
    expect(ended.code, ended.stderr).toBe(3);
    const users = usersOf(service);
    const fate = (wanted: string): string[] =>
      users
        .filter((id) => service.state.pulls.fateOf(service.state.users.get(service.teamId, id)) === wanted)
        .toSorted();
    const unconnected = users.slice(-3).toSorted();
    const unpulled = [...fate('left out'), ...fate('unpulled')].toSorted();
    const done = users.filter((id) => ![...unconnected, ...unpulled, ...fate('failing')].includes(id));
    expect(byStatus(out)).toEqual({
      done: done.toSorted(),
      failed: fate('failing'),
      not_connected: unconnected,
      not_pulled: unpulled,
    });
    const wanted = await mealIds(service, RANGE, done);
    expect(rowIds(join(out, 'meals.ndjson'))).toEqual(wanted);
    expect(lastLine(ended)).toMatchObject({
      ok: false,
      users: 12,
      outcomes: { done: 5, failed: 1, not_connected: 3, not_pulled: 3 },
      not_connected_users: unconnected,
      not_pulled_users: unpulled,
      meals: wanted.length,
    });
    for (const user of [...unconnected, ...unpulled]) expect(ended.stderr).toContain(user);
  });

  test('who is not connected is not triggered, and that alone is no failure', async () => {
    const service = await sandbox({ users: 60, speed: SPEED, faults: { unconnectedUsers: 55 } });
    const out = await temporaryFolder();
    const ended = await backfill(service, out, ...FLAGS, ...TRIGGER);
    expect([ended.code, lastLine(ended)['ok']]).toEqual([0, true]);
    expect(opsOf(service).map(({ processed }) => processed)).toEqual([5]);
  });

  test('no user is connected: nothing is triggered', async () => {
    const service = await sandbox({ users: 2, speed: SPEED, faults: { unconnectedUsers: 2 } });
    const ended = await backfill(service, await temporaryFolder(), ...FLAGS, ...TRIGGER);
    expect([ended.code, opsOf(service)]).toEqual([0, []]);
  });

  test('a user whom the service does not know is named as failed, the others come', async () => {
    const service = await sandbox({ users: 2, speed: SPEED });
    const stranger = '00000000-0000-4000-8000-00000000dead';
    const out = await temporaryFolder();
    const ended = await backfill(service, out, ...FLAGS, '--user', stranger, ...TRIGGER);
    expect([ended.code, byStatus(out)['failed']]).toEqual([3, [stranger]]);
    expect(rowIds(join(out, 'meals.ndjson'))).toEqual(await mealIds(service, RANGE, usersOf(service)));
  });
});

describe('a bulk operation that does not succeed ends the backfill, which can be resumed', () => {
  test.each([
    ['aborted', { abortedOps: 1 }],
    ['failure', { failedOps: 1 }],
  ])('%s: exit 1; --resume triggers it again and makes all rows', async (status, faults) => {
    const service = await sandbox({ users: 4, speed: SPEED, data: 'after_pull', faults });
    const out = await temporaryFolder();
    const first = await backfill(service, out, ...FLAGS, ...TRIGGER);
    expect([first.code, first.stdout]).toEqual([1, '']);
    expect(first.stderr).toContain(`made_up: 2 processed, 2 pending, ${status}; --resume`);
    expect(readdirSync(out)).toEqual(['_backfill']);
    const resumed = await backfill(service, out, '--resume', ...TRIGGER);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(opsOf(service).map((op) => op.status)).toEqual(['success', status]);
    expect(rowIds(join(out, 'meals.ndjson'))).toEqual(await mealIds(service, RANGE));
  });

  test('never starts: exit 1 once nothing has moved for --patience; --resume continues with the same operation', async () => {
    const service = await sandbox({ users: 2, speed: SPEED, faults: { stuckOps: 1 } });
    const out = await temporaryFolder();
    const patience = ['--patience', '300ms'];
    const first = await backfill(service, out, ...FLAGS, ...TRIGGER, ...patience);
    expect([first.code, first.stderr]).toEqual([
      1,
      expect.stringContaining('made_up: 0 processed, 2 pending'),
    ]);
    const again = await backfill(service, out, '--resume', ...TRIGGER, ...patience);
    expect([again.code, opsOf(service).length]).toEqual([1, 1]);
    for (const op of opsOf(service)) service.state.bulkOps.abort(op);
    expect((await backfill(service, out, '--resume', ...TRIGGER)).code).toBe(1);
    expect((await backfill(service, out, '--resume', ...TRIGGER)).code).toBe(0);
    expect(opsOf(service)).toHaveLength(2);
  });

  test('a bare --resume of a run with --trigger has the history pulled before it fetches', async () => {
    const service = await sandbox({ users: 2, speed: SPEED, data: 'after_pull', faults: { stuckOps: 1 } });
    const out = await temporaryFolder();
    const first = await backfill(service, out, ...FLAGS, ...TRIGGER, '--patience', '300ms');
    expect(first.code).toBe(1);
    for (const op of opsOf(service)) service.state.bulkOps.abort(op);
    expect((await backfill(service, out, '--resume', '--poll', '50ms')).code).toBe(1);
    expect((await backfill(service, out, '--resume', '--poll', '50ms')).code).toBe(0);
    const ids = rowIds(join(out, 'meals.ndjson'));
    expect([ids.length > 0, ids]).toEqual([true, await mealIds(service, RANGE)]);
  });

  test('is not shown, and neither are pulls: an error, as the trigger may not have been accepted', async () => {
    const { url, apiKey, ...rest } = await sandbox({ users: 2, faults: { leftOutUsers: 2 } });
    const client = new ServiceClient({ baseUrl: url, apiKey });
    const bulk = { trigger: () => Promise.resolve('accepted'), ops: noOps };
    const service = { users: client.users, pulls: client.pulls, bulk };
    const output = await temporaryFolder();
    const users = rest.state.users.list(rest.teamId).map(({ id }) => id);
    const run = runBackfill({
      service: service as unknown as ServiceClient,
      plan: makePlan({
        users,
        providers: ['made_up'],
        since: RANGE.since,
        until: RANGE.until,
        windowDays: 0,
      }),
      output,
      resume: false,
      trigger: true,
      concurrency: 1,
      pollMs: 10,
      patienceMs: 50,
      signal: new AbortController().signal,
    });
    await expect(run).rejects.toMatchObject({ code: 'bulk_op_stuck' });
    await client.close();
    expect(JSON.parse(readFileSync(join(output, '_backfill/state.json'), 'utf8'))).toMatchObject({
      followed: false,
    });
  });

  test('the default patience has an end', async () => {
    const { stdout } = await millrace(['backfill', '--help']);
    const [, patience = '0'] = /--patience [^]*?\(default:\s+(\w+)\)/.exec(stdout) ?? [];
    expect(parseDuration(patience)).toBeGreaterThan(0);
  });
});

describe('a connection that breaks on a trigger', () => {
  test.each(['drop-before', 'drop-after'] as const)(
    '%s: exit 3, and --resume triggers once in all',
    async (kind) => {
      const service = await sandbox({ users: 1, speed: SPEED });
      const out = await temporaryFolder();
      // The list of users, the user, the pulls, the bulk ops, and then the trigger.
      service.state.faults.next(null, null, null, null, { kind });
      const first = await backfill(service, out, ...FLAGS, ...TRIGGER);
      expect([first.code, first.stderr]).toEqual([3, expect.stringContaining('--resume continues')]);
      expect(opsOf(service)).toHaveLength(kind === 'drop-after' ? 1 : 0);
      const resumed = await backfill(service, out, '--resume', ...TRIGGER);
      expect([resumed.code, opsOf(service).length]).toEqual([0, 1]);
      expect(rowIds(join(out, 'meals.ndjson'))).toEqual(await mealIds(service, RANGE));
    },
  );
});
