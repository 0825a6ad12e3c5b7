import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { standIn } from './stand-in.ts';
import { rowIds } from './support.ts';
import { join } from 'node:path';

const RANGE = ['--provider', 'made_up', '--since', '2026-01-01', '--until', '2026-01-31'];

test('a run that began without a pull is not resumed with one: what it has fetched is from before', async () => {
  const service = await standIn({ users: 2 });
  const [, second] = service.users;
  const out = await temporaryFolder();
  const run = (...args: string[]) => millrace(['backfill', '--out', out, ...args], { ...service, cwd: out });
  service.instead = (_, user) => (user === second ? 404 : null);
  expect((await run('--all-users', ...RANGE)).code).toBe(3);
  service.instead = () => null;
  const later = await run('--resume', '--trigger', '--poll', '10ms');
  expect([later.code, later.stderr]).toEqual([2, expect.stringContaining('began without --trigger')]);
  expect((await run('--resume')).code).toBe(0);
  expect(rowIds(join(out, 'meals.ndjson'))).toEqual(service.mealIds());
});

test('rows that were fetched stay when the service says, on another try, that their pull failed', async () => {
  const service = await standIn({ users: 2 });
  const [first = '', second = ''] = service.users;
  const out = await temporaryFolder();
  const failing = new Set([second]);
  service.onTrigger = () => {
    for (const user of service.users)
      service.pulls.set(user, { status: failing.has(user) ? 'failure' : 'success' });
  };
  const run = (...args: string[]) =>
    millrace(['backfill', '--out', out, '--poll', '10ms', ...args], { ...service, cwd: out });
  expect((await run('--all-users', '--trigger', ...RANGE)).code).toBe(3);
  expect(rowIds(join(out, 'meals.ndjson'))).toEqual(service.mealIds([first]));
  failing.delete(second);
  failing.add(first);
  expect((await run('--resume')).code).toBe(0);
  expect(rowIds(join(out, 'meals.ndjson'))).toEqual(service.mealIds());
});
