import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/start.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { serve } from '../support/listen.ts';

test('every kind of reference data lands in its tables', async () => {
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

/** Numbers that a double does not hold, or writes otherwise. */
const ODD = ['1.10', '12345678901234567890', '1e2', '-0.0', '0.1000000000000000055511151231257827'] as const;

test('numbers keep their text, whatever they are, in pages, lists and single objects', async () => {
  const url = await answering({
    '/v3/lab_tests/markers': `{"markers":[${ODD.map((odd, n) => marker(n + 1, odd)).join(',')}],"total":${ODD.length},"page":1,"size":100}`,
    '/v3/lab_test/lab_account': `{"data":[{"id":"${UUID}","lab":"made_up_lab_1","status":"active","allowed_billing":{"made_up":${ODD[0]}},"made_up":${ODD[1]}}]}`,
    '/orders': `{"orders":[{"id":"${UUID}","user_id":"${UUID}","made_up":${ODD[1]}}]}`,
    '/v3/order/area/info': `{"zip_code":"10001","phlebotomy":{"is_served":true,"providers":[]},"central_labs":{},"made_up":${ODD[1]}}`,
    [`/v2/user/${UUID}/insurance/latest`]: `{"payor_code":"MADEUP","member_id":"made-up","relationship":"Self","made_up":${ODD[1]}}`,
  });
  const out = await temporaryFolder();
  const env = { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
  for (const args of [
    ['markers'],
    ['lab-accounts'],
    ['orders'],
    ['areas', '--zip', '10001'],
    ['insurance', '--user', UUID],
  ]) {
    const ended = await millrace(['pull', ...args, '--out', out], { env, cwd: out });
    expect(ended.code, ended.stderr).toBe(0);
  }
  const rows = (table: string) => readFileSync(join(out, `${table}.ndjson`), 'utf8');
  const markers = rows('markers').split('\n').filter(Boolean);
  for (const [n, odd] of ODD.entries()) expect(markers[n]).toContain(`"made_up":${odd}`);
  expect(rows('lab_accounts')).toContain(`"made_up":${ODD[0]}`);
  for (const table of ['lab_accounts', 'orders', 'areas', 'insurance'])
    expect([table, rows(table)]).toEqual([table, expect.stringContaining(`"made_up":${ODD[1]}`)]);
});

const LOINC = '{"id":7,"name":"made up","slug":"made-up","code":"1-1","unit":null}';
const marker = (n: number, odd: string): string =>
  `{"id":${n},"name":"Made-up ${n}","slug":"m-${n}","lab_id":1,"provider_id":"M${n}","type":"biomarker","made_up":${odd},` +
  `"expected_results":[{"id":${n},"name":"r","slug":"r","lab_id":1,"provider_id":"R","loinc":${LOINC},"made_up":${odd}}]}`;

const UUID = '00000000-0000-4000-8000-000000000042';

/** A service that has one answer for each path. */
function answering(answers: Readonly<Record<string, string>>): Promise<string> {
  return serve((request, response) => {
    const body = answers[new URL(request.url ?? '', 'http://localhost').pathname];
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(body);
  });
}
