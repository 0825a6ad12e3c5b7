import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFile, type ChildProcess } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { childEnvironment, MAIN } from '../../support/millrace.ts';
import { runCount } from '../../support/run-count.ts';
import { until } from '../../support/until.ts';
import { backfill, environment, lastLine, lines, sandbox, tasksIn } from './support.ts';

const RANGE = ['--since', '2026-01-01', '--until', '2026-01-10'];
/** 3 users always fail, and 50 are asked for again. */
const USERS = runCount({ long: 1000 });
const KILLED_USERS = runCount({ long: 150 });

/** Every file of a folder with a hash of what it holds. */
function contents(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return [path.slice(folder.length), hash('sha256', readFileSync(path), 'hex')];
      }),
  );
}

describe('backfill', () => {
  test(`${USERS} users, 3 always failing, 50 retrying, 429s and dropped connections: complete, exit 3 naming the 3`, async () => {
    const service = await sandbox({
      users: USERS,
      speed: 100_000,
      data: 'after_pull',
      faults: {
        failingUsers: 3,
        retryingUsers: 50,
        rate429: 0.02,
        dropConnections: 0.01,
        retryAfter: 0.01,
      },
    });
    const out = await temporaryFolder();
    const begun = Date.now();
    const pull = ['--all-users', '--provider', 'made_up', '--trigger', '--poll', '200ms'];
    const ended = await backfill(service, out, ...pull, ...RANGE);
    expect(ended.stderr).not.toContain('    at ');
    const summary = lastLine(ended);
    expect(ended.code, ended.stderr).toBe(3);
    const outcomes = lines(join(out, '_backfill.ndjson'));
    expect(outcomes).toHaveLength(USERS);
    const failed = outcomes.filter(({ status }) => status === 'failed');
    expect(failed).toHaveLength(3);
    expect(summary).toMatchObject({
      ok: false,
      users: USERS,
      failed_users: failed.map(({ user_id: user }) => user),
    });
    for (const { user_id: user } of failed) expect(ended.stderr).toContain(String(user));
    for (const { error } of failed) expect(error).toBeTruthy();
    const meals = lines(join(out, 'meals.ndjson'));
    // One run, one time.
    const [loadedAt = '', ...others] = new Set(meals.map(({ _loaded_at: at }) => String(at)));
    expect(others).toEqual([]);
    expect(Date.parse(loadedAt)).toBeGreaterThanOrEqual(begun);
    expect(meals).toHaveLength(Number(summary['meals']));
    expect(new Set(meals.map(({ id }) => id)).size).toBe(meals.length);
    expect(new Set(meals.map(({ user_id: user }) => user)).size).toBe(USERS - 3);
    expect(lines(join(out, 'meal_items.ndjson'))).toHaveLength(Number(summary['meal_items']));
    expect(readdirSync(out).toSorted()).toEqual([
      '_backfill',
      '_backfill.ndjson',
      '_pulls.ndjson',
      '_rejects.ndjson',
      'meal_items.ndjson',
      'meals.ndjson',
    ]);
  });

  test('fault 32: killed -9 again and again and resumed, it makes the same files as an undisturbed run', async () => {
    const options = { users: KILLED_USERS, speed: 100_000, days: 10, mealsPerDay: 3 };
    const undisturbed = await temporaryFolder();
    const at = ['--loaded-at', '2026-11-21T00:00:00Z'];
    const args = ['--provider', 'made_up', '--trigger', '--poll', '100ms', '--window', '3', ...RANGE, ...at];
    expect((await backfill(await sandbox(options), undisturbed, '--all-users', ...args)).code).toBe(0);

    const service = await sandbox(options);
    const disturbed = await temporaryFolder();
    const start = (...more: string[]): ChildProcess =>
      execFile(process.execPath, [MAIN, 'backfill', '--out', disturbed, ...more], {
        env: childEnvironment(environment(service)),
      });
    const work = join(disturbed, '_backfill');
    // Of three tasks for each user.
    const goals = [0, 1, ...[0.4, 1.3, 2.4].map((share) => Math.floor(share * KILLED_USERS))];
    for (const [round, goal] of goals.entries()) {
      const child = start(
        ...(round === 0 ? ['--all-users', ...args] : ['--resume', '--trigger', '--poll', '100ms']),
      );
      const gone = new Promise((resolve) => child.once('exit', resolve));
      await until(`task ${goal}`, () =>
        goal === 0 ? existsSync(join(work, 'state.json')) : tasksIn(work) >= goal,
      );
      child.kill('SIGKILL');
      await gone;
    }
    const resumed = await backfill(service, disturbed, '--resume', '--trigger', '--poll', '100ms');
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(contents(disturbed)).toEqual(contents(undisturbed));
  });
});
