import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, type Ended } from '../../support/millrace.ts';
import { standIn, type Pull, type StandIn } from './stand-in.ts';
import { lines, rowIds } from './support.ts';

const BEGIN = ['--all-users', '--provider', 'made_up', '--since', '2026-01-01', '--until', '2026-01-31'];
const DONE: Pull = { status: 'success', days_with_data: 2 };
const FAILED: Pull = { status: 'failure', error_details: 'made up' };

async function folderFor({ env }: StandIn) {
  const out = await temporaryFolder();
  return {
    out,
    run: (...args: readonly string[]): Promise<Ended> =>
      millrace(['backfill', '--out', out, '--poll', '5ms', ...args], { env, cwd: out }),
    meals: () => rowIds(join(out, 'meals.ndjson')),
    statuses: () => lines(join(out, '_backfill.ndjson')).map(({ status }) => status),
  };
}

/** Pulls of before the trigger, with fewer meals than there are once ours has landed. */
async function pulledBefore() {
  const service = await standIn({ users: 2, meals: 0 });
  const have = (meals: number): void => service.users.forEach((user) => service.meals.set(user, meals));
  const show = (pull: Pull): void => service.users.forEach((user) => service.pulls.set(user, pull));
  have(2);
  show(DONE);
  return { service, land: () => have(5), show };
}

test('--resume triggers again, and only, those whose pulls failed or were not made', async () => {
  const service = await standIn({ users: 4, meals: 0 });
  const [first = '', second = '', third = '', fourth = ''] = service.users;
  service.onTrigger = ({ users }) => {
    for (const user of users) service.pulls.set(user, DONE);
    for (const user of users) service.meals.set(user, 3);
    service.pulls.set(second, { ...FAILED, attempt: service.ops.length });
    service.pulls.delete(third);
  };
  const { run, meals, statuses, out } = await folderFor(service);
  const failed = await run(...BEGIN, '--trigger');
  expect([failed.code, statuses()]).toEqual([3, ['done', 'failed', 'not_pulled', 'done']]);
  expect(failed.stderr).toContain(
    `--resume --out ${out} asks again for those who failed, and triggers 2 pulls again`,
  );
  // Again in vain, then with the third, then with both.
  expect((await run('--resume')).code).toBe(3);
  service.onTrigger = () => {
    service.pulls.set(third, DONE);
    service.meals.set(third, 1);
  };
  expect([(await run('--resume')).code, statuses()]).toEqual([3, ['done', 'failed', 'done', 'done']]);
  service.onTrigger = () => void service.pulls.set(second, DONE);
  expect([(await run('--resume', ...BEGIN, '--trigger')).code, statuses()]).toEqual([
    0,
    ['done', 'done', 'done', 'done'],
  ]);
  expect(service.ops.map(({ users }) => users)).toEqual([
    [first, second, third, fourth],
    [second, third],
    [second, third],
    [second],
  ]);
  expect([meals(), existsSync(join(out, '_backfill'))]).toEqual([service.mealIds(), false]);
});

test('--trigger-only names those whose pulls failed, and --resume triggers them again', async () => {
  const service = await standIn({ users: 3, meals: 0 });
  const [, second = ''] = service.users;
  service.onTrigger = ({ users }) => {
    for (const user of users) service.pulls.set(user, DONE);
    if (service.ops.length === 1) service.pulls.set(second, FAILED);
  };
  const { run, out } = await folderFor(service);
  const failed = await run(...BEGIN, '--trigger-only');
  expect([failed.code, failed.stdout]).toEqual([3, expect.stringContaining('2 done, 1 failed')]);
  expect(failed.stderr).toContain(`failed: ${second} made_up: made up`);
  expect(failed.stderr).toContain(`--trigger-only --resume --out ${out}`);
  const again = await run('--trigger-only', '--resume');
  expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('3 done, 0 failed')]);
  expect([service.ops.at(-1)?.users, existsSync(join(out, '_backfill'))]).toEqual([[second], false]);
});

test('--resume triggers no pull when only meals could not be fetched', async () => {
  const service = await standIn({ users: 2, meals: 0 });
  service.onTrigger = ({ users }) => users.forEach((user) => service.pulls.set(user, DONE));
  const { run, meals, out } = await folderFor(service);
  const [first = ''] = service.users;
  service.meals.delete(first);
  const ended = await run(...BEGIN, '--trigger');
  expect([ended.code, ended.stderr]).toEqual([
    3,
    expect.stringContaining(`--resume --out ${out} asks again for those who failed\n`),
  ]);
  service.meals.set(first, 4);
  expect([(await run('--resume')).code, service.ops.length]).toEqual([0, 1]);
  expect([meals(), existsSync(join(out, '_backfill'))]).toEqual([service.mealIds(), false]);
});

test.each([
  ['and the operation is over', true],
  ['and no operation is shown', false],
])('a success from before the trigger is not taken for ours, %s', async (_, showsOps) => {
  const { service, land, show } = await pulledBefore();
  service.showsOps = showsOps;
  service.onLook = (look) => {
    if (look === (showsOps ? 3 : 12)) show({ status: 'in_progress' });
    if (look === (showsOps ? 4 : 13)) land();
    if (look === (showsOps ? 4 : 13)) show(DONE);
  };
  const { run, meals } = await folderFor(service);
  const ended = await run(...BEGIN, '--trigger');
  expect(ended.code, ended.stderr).toBe(0);
  expect([meals(), meals().length]).toEqual([service.mealIds(), 10]);
});

test('a success that is the same as before is believed once the operation is over', async () => {
  const { service, land } = await pulledBefore();
  service.onTrigger = land;
  const { run, meals } = await folderFor(service);
  expect([(await run(...BEGIN, '--trigger')).code, meals()]).toEqual([0, service.mealIds()]);
});

test('nothing is said to be complete when the service shows no sign of the trigger', async () => {
  const { service } = await pulledBefore();
  service.showsOps = false;
  const { run, out } = await folderFor(service);
  const ended = await run(...BEGIN, '--trigger', '--patience', '100ms');
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining('--resume')]);
  expect(existsSync(join(out, '_backfill.ndjson'))).toBe(false);
});

test('what was shown before the trigger is known after an interruption', async () => {
  const { service, land, show } = await pulledBefore();
  service.showsOps = false;
  service.onLook = () => 401;
  const { run, meals } = await folderFor(service);
  expect((await run(...BEGIN, '--trigger')).code).toBe(1);
  service.onLook = (look) => {
    if (look === 8) land();
    if (look === 8) show({ ...DONE, days_with_data: 5 });
  };
  expect([(await run('--resume')).code, service.ops.length]).toEqual([0, 1]);
  expect([meals(), meals().length]).toEqual([service.mealIds(), 10]);
});

test.each([
  ['two users', 2],
  ['sixty users', 60],
])('the pulls of %s among many are found, few of them without reading the whole list', async (_, named) => {
  const service = await standIn({ users: 260, meals: 0 });
  for (const user of service.users) service.pulls.set(user, DONE);
  service.onTrigger = ({ users }) =>
    users.forEach((user) => service.pulls.set(user, { status: 'success', days_with_data: 5 }));
  const { run, statuses } = await folderFor(service);
  const users = service.users.slice(-named).flatMap((user) => ['--user', user]);
  expect((await run(...users, ...BEGIN.slice(1), '--trigger')).code).toBe(0);
  expect(statuses()).toEqual(Array.from({ length: named }, () => 'done'));
  // Before the trigger and after it, and before the first request and after the last: the first page, and each user or all pages.
  expect(service.askedForPulls).toBe(4 * (1 + (named <= 50 ? named : 6)));
});

test('a pull of before the trigger that one look at the list did not show is not taken for ours', async () => {
  const service = await standIn({ users: 70, meals: 0 });
  const hidden = service.users.at(-1) ?? '';
  for (const user of service.users) service.meals.set(user, 2);
  for (const user of service.users) service.pulls.set(user, DONE);
  // The first page is asked for twice: it tells whether there are more.
  service.hides = (user, list) => list <= 2 && user === hidden;
  // It lags behind: looks after the trigger still show what was there before it, and that of the hidden one longest.
  service.onLook = (look) => {
    for (const user of service.users) {
      const late = user === hidden ? look - 3 : look;
      if (late === 2) service.pulls.set(user, { status: 'in_progress' });
      if (late === 3) service.pulls.set(user, { ...DONE, days_with_data: 5 });
      if (late === 3) service.meals.set(user, 5);
    }
  };
  const { run, meals } = await folderFor(service);
  expect((await run(...BEGIN, '--trigger')).code).toBe(0);
  expect([meals().length, meals()]).toEqual([70 * 5, service.mealIds()]);
});

test('a user who is deleted at the service while pulls are followed ends for themselves only', async () => {
  const service = await standIn({ users: 60, meals: 0 });
  const [gone = '', ...others] = service.users;
  const named = [gone, ...others.slice(0, 9)];
  service.onTrigger = ({ users }) => {
    for (const user of users) service.meals.set(user, 3);
    for (const user of service.users) service.pulls.set(user, DONE);
    service.pulls.delete(gone);
    service.meals.delete(gone);
    service.onAsked = (user) => (user === gone ? 404 : undefined);
  };
  for (const user of others.slice(9)) service.pulls.set(user, DONE);
  const { run, statuses } = await folderFor(service);
  const users = named.flatMap((user) => ['--user', user]);
  const { code } = await run(...BEGIN.slice(1), ...users, '--trigger');
  expect([code, statuses()]).toEqual([3, ['not_pulled', ...Array.from({ length: 9 }, () => 'done')]]);
});
