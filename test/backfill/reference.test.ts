import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/start.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';

test('every kind of reference data lands in its tables', { timeout: 60_000 }, async () => {
  const service = await startSandbox({ host: '127.0.0.1', seed: 'made-up', users: 3 });
  onTestFinished(() => service.stop());
  const [user] = service.state.users.list(service.teamId);
  const out = await temporaryFolder();
  const env = { MILLRACE_SERVICE_BASE_URL: service.url, MILLRACE_SERVICE_API_KEY: service.apiKey };
  const pull = (...args: string[]) => millrace(['pull', ...args, '--out', out, '--json'], { env, cwd: out });
  for (const [resource, table, ...args] of [
    ['markers', 'markers'],
    ['lab-accounts', 'lab_accounts'],
    ['areas', 'areas', '--zip', '10001', '--zip', '94103'],
    ['insurance', 'insurance', '--user', user!.id],
    ['orders', 'orders'],
  ] as const) {
    const ended = await pull(resource, ...args);
    expect(ended.code, ended.stderr).toBe(0);
    const { ok, rows } = JSON.parse(ended.stdout) as { ok: boolean; rows: Record<string, number> };
    expect(ok).toBe(true);
    const lines = readFileSync(join(out, `${table}.ndjson`), 'utf8')
      .split('\n')
      .filter(Boolean);
    expect(lines).toHaveLength(rows[table] ?? -1);
    if (resource !== 'orders') expect(lines.length).toBeGreaterThan(0);
  }
  const unknown = await pull('nothing');
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('markers')]);
});
