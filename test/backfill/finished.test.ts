import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
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
    [`of other users (${a})`, '--user', b, ...asked],
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

test('a resume does not pass over what it is told', async () => {
  const service = await sandbox({ users: 1 });
  const out = await temporaryFolder();
  const refused = { kind: 'answer', status: 403, headers: {}, body: { detail: 'made up' } } as const;
  service.state.faults.next(null, refused);
  expect(
    (await backfill(service, out, '--all-users', '--since', '2026-01-01', '--until', '2026-01-05')).code,
  ).toBe(1);
  const other = await backfill(service, out, '--resume', '--since', '2026-01-03');
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('began with --since 2026-01-01')]);
  expect((await backfill(service, out, '--resume', '--until', '2026-01-05')).code).toBe(0);
});
