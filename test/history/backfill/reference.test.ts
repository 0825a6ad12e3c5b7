import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { answering } from './listing.ts';

/** Numbers that a double does not hold, or writes otherwise. */
const ODD = ['1.10', '12345678901234567890', '1e2', '-0.0', '0.1000000000000000055511151231257827'] as const;

test('numbers keep their text, whatever they are, in pages, lists and single objects', async () => {
  const answers: Readonly<Record<string, string>> = {
    '/v3/lab_tests/markers': `{"markers":[${ODD.map((odd, n) => marker(n + 1, odd)).join(',')}],"total":${ODD.length},"page":1,"size":100}`,
    '/v3/lab_test/lab_account': `{"data":[{"id":"${UUID}","lab":"made_up_lab_1","status":"active","allowed_billing":{"made_up":${ODD[0]}},"made_up":${ODD[1]}}]}`,
    '/orders': `{"orders":[{"id":"${UUID}","user_id":"${UUID}","made_up":${ODD[1]}}]}`,
    '/v3/order/area/info': `{"zip_code":"10001","phlebotomy":{"is_served":true,"providers":[]},"central_labs":{},"made_up":${ODD[1]}}`,
    [`/v2/user/${UUID}/insurance/latest`]: `{"payor_code":"MADEUP","member_id":"made-up","relationship":"Self","made_up":${ODD[1]}}`,
  };
  const [out, env] = [await temporaryFolder(), await answering(({ pathname }) => answers[pathname] ?? 404)];
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
