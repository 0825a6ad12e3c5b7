import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { backfill, environment, lastLine, sandbox } from './support.ts';

const RANGE = ['--since', '2026-01-01', '--until', '2026-01-10'];

test('a dry run says what it would do, with an estimate from the throttle, and writes nothing', async () => {
  const service = await sandbox({ users: 100 });
  const out = await temporaryFolder();
  const pull = ['--all-users', '--provider', 'made_up', '--trigger', '--dry-run'];
  const ended = await backfill(service, out, ...pull, ...RANGE);
  expect(lastLine(ended)).toMatchObject({
    users: 100,
    tasks: 100,
    triggers: [{ provider: 'made_up', connections: 100, estimate_ms: 13 * 60_000 }],
  });
  expect(readdirSync(out)).toEqual([]);
});

test('what is wrong is said in one line, with the right exit code', async () => {
  const service = await sandbox({ users: 1 });
  const out = await temporaryFolder();
  const wrong = await backfill(service, out, '--user', 'not-a-uuid', ...RANGE);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('not-a-uuid')]);
  const key = await millrace(['backfill', '--out', out, '--all-users', ...RANGE], {
    env: { ...environment(service), MILLRACE_SERVICE_API_KEY: 'wrong' },
    cwd: out,
  });
  expect([key.code, key.stderr.trim().split('\n').length]).toEqual([1, 1]);
});
