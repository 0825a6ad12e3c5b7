import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startSandbox, type Sandbox } from '../../../src/sandbox/start.ts';
import { DAY, ManualClock } from '../../support/manual-clock.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { serve } from '../../support/listen.ts';
import { BEYOND } from '../../tables/service-readings.ts';
import { millrace, type Ended } from '../../support/millrace.ts';

interface Scene {
  readonly sandbox: Sandbox;
  readonly clock: ManualClock;
  readonly users: readonly string[];
  readonly job: string;
  pull(out: string, ...args: string[]): Promise<Ended>;
}

/** A sandbox with an order, a parsing job and a historical pull in it. */
async function scene(): Promise<Scene> {
  const clock = new ManualClock();
  const sandbox = await startSandbox({ users: 12, days: 3, clock, providers: ['made_up'] });
  onTestFinished(() => sandbox.stop());
  const { state, teamId } = sandbox;
  const users = state.users.list(teamId);
  const first = users[0]!;
  const order = {
    user: first,
    test: state.labs.tests[0]!,
    accountId: null,
    clinicalNotes: null,
    updateReason: null,
    way: 'created',
  } as const;
  state.orders.place(state.team, order, null, '');
  const job = state.parsingJobs.create(first, 100, false);
  state.bulkOps.enqueue(teamId, 'made_up', [first.id]);
  const env = { MILLRACE_SERVICE_BASE_URL: sandbox.url, MILLRACE_SERVICE_API_KEY: sandbox.apiKey };
  return {
    sandbox,
    clock,
    users: users.map(({ id }) => id),
    job: job.id,
    pull: (out, ...args) => millrace(['pull', ...args, '--out', out, '--json'], { env, cwd: out }),
  };
}

interface Summary {
  readonly ok: boolean;
  readonly rows: Readonly<Record<string, number>>;
  readonly rejects: number;
  readonly missing: readonly { readonly item: string; readonly reason: string }[];
  readonly unknown_fields: readonly string[];
  readonly files: readonly string[];
}

function summaryOf({ code, stdout, stderr }: Ended): Summary {
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as Summary;
}

test('every resource lands in its tables, with the time of the run in every row', async () => {
  const { pull, users, job, clock, sandbox } = await scene();
  clock.advance(DAY);
  const [test1] = sandbox.state.labs.tests;
  const out = await temporaryFolder();
  for (const [resource, rows, ...args] of [
    ['users', { users: 12, user_connections: 12 }],
    ['users', { users: 1, user_connections: 1 }, '--user', users[3]!],
    ['insurance', { insurance: 11 }, '--all-users'],
    ['lab-tests', { lab_tests: 8, lab_test_markers: 240 }],
    ['markers', { markers: 240, marker_expected_results: 240 }],
    ['markers', { markers: 60, marker_expected_results: 60 }, '--lab-slug', 'made_up_lab_1'],
    ['markers', { markers: 31 }, '--lab-test', test1!.id, '--add-on', 'M0002'],
    ['lab-accounts', { lab_accounts: 10 }],
    ['lab_accounts', { lab_accounts: 1 }, '--status', 'pending'],
    ['areas', { areas: 2, area_centers: 8 }, '--zip', '12345', '--zip', '10001', '--radius', '100'],
    ['areas', { areas: 1, area_centers: 1 }, '--zip', '12345', '--lab', 'made_up_lab_2'],
    ['orders', { orders: 1 }],
    ['orders', { orders: 0 }, '--interpretation', 'critical'],
    ['parsing-jobs', { parsing_jobs: 1, parsing_job_results: 3 }, '--job', job],
    ['bulk-ops', { bulk_ops: 1 }],
    ['historical-pulls', { historical_pulls: 1, historical_pull_resources: 60 }],
    ['historical-pulls', { historical_pulls: 0 }, '--user', users[4]!, '--provider', 'made_up'],
  ] as const) {
    const begun = Date.now();
    const summary = summaryOf(await pull(out, resource, ...args));
    expect([resource, summary.rows]).toEqual([resource, expect.objectContaining(rows)]);
    const unknown = summary.unknown_fields.filter((name) => !BEYOND.some((known) => name.startsWith(known)));
    expect([summary.rejects, unknown]).toEqual([0, []]);
    for (const file of summary.files) {
      for (const line of linesOf(file)) {
        const { _loaded_at: loaded } = JSON.parse(line) as { _loaded_at: string };
        expect(Date.parse(loaded)).toBeGreaterThanOrEqual(begun);
        expect(Date.parse(loaded)).toBeLessThanOrEqual(Date.now());
      }
    }
  }
});

test('what the service does not have is named, and the others come all the same', async () => {
  const { pull, users } = await scene();
  const unknown = '00000000-0000-4000-8000-000000000000';
  const out = await temporaryFolder();
  const ended = await pull(out, 'insurance', '--user', users[7]!, '--user', unknown, '--user', users[1]!);
  const { ok, rows, missing } = summaryOf(ended);
  expect([ok, rows]).toEqual([true, { insurance: 1 }]);
  expect(missing).toEqual([
    { item: `insurance of user ${users[7]!}`, reason: 'No insurance found for this user' },
    { item: `insurance of user ${unknown}`, reason: 'User not found' },
  ]);
  expect(ended.stderr).toContain(`missing: insurance of user ${users[7]!}: No insurance found`);
  const [row] = linesOf(join(out, 'insurance.ndjson'));
  expect(JSON.parse(row!)).toMatchObject({ user_id: users[1]!, relationship: 'Spouse' });
});

test.each([
  [['nothing'], 'nothing is not one of users, insurance'],
  [['insurance'], 'insurance needs --user'],
  [['areas', '--radius', '50'], 'areas needs --zip'],
  [['areas', '--zip', '12345', '--radius', '30'], 'Allowed choices are 10, 20, 25, 50, 100'],
  [['markers', '--zip', '12345'], 'markers does not take --zip'],
  [['orders', '--service-path', 'orders'], 'write it as operation=path'],
  [['orders', '--service-path', 'nothing=/x'], 'paths.nothing is not a known path'],
])('%j is refused', async (args, problem) => {
  const env = { MILLRACE_SERVICE_BASE_URL: 'http://127.0.0.1:9', MILLRACE_SERVICE_API_KEY: 'made-up' };
  const out = await temporaryFolder();
  const { code, stderr } = await millrace(['pull', ...args, '--out', out], { env, cwd: out });
  // Messages are folded at the width of a terminal.
  expect([code, stderr.replaceAll(/\s+/g, ' ')]).toEqual([2, expect.stringContaining(problem)]);
});

describe('answers that say less than usual', () => {
  test.each([
    ['lab-accounts', '{}', 0],
    ['lab-accounts', '{"data":null}', 0],
    ['lab-accounts', '{"data":[{"id":"a"}]}', 1],
    ['users', '{"users":[{"user_id":"u"}],"total":null}', 1],
    ['lab-tests', '{"data":[]}', 0],
    ['lab-tests', '[{"id":"a"},{"id":"b"}]', 2],
    ['lab-tests', '[]', 0],
  ])('%s: %s', async (resource, body, count) => {
    const { url } = await answering(() => body);
    const out = await temporaryFolder();
    const env = { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
    const ended = await millrace(['pull', resource, '--out', out, '--json'], { env, cwd: out });
    const { rows, rejects } = summaryOf(ended);
    expect([rows[resource.replace('-', '_')], rejects]).toEqual([count, 0]);
  });

  test('users without a total are read to the end', async () => {
    const seen: string[] = [];
    const { url } = await answering((path) => {
      const [offset = 0, limit = 0] = ['offset', 'limit'].map((name) =>
        Number(new URL(path, 'http://localhost').searchParams.get(name)),
      );
      if (limit > 1) seen.push(path);
      const users = Array.from({ length: Math.min(limit, 1007 - offset) }, (_, n) => ({
        user_id: `u${offset + n}`,
      }));
      return JSON.stringify({ users, total: null });
    });
    const out = await temporaryFolder();
    const env = { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
    const ended = await millrace(['pull', 'users', '--out', out, '--json'], { env, cwd: out });
    expect(summaryOf(ended).rows['users']).toBe(1007);
    // The last one is empty.
    expect(seen).toHaveLength(4);
  });
});

describe('paths and headers of the service', () => {
  test.each(['the config', 'the environment', 'the command'])('are said by %s', async (where) => {
    const { url, requests } = await answering(() => '{"orders":[{"id":"made-up"}]}');
    const out = await temporaryFolder();
    const config = join(out, 'millrace.yaml');
    const env: Record<string, string> = {
      MILLRACE_SERVICE_BASE_URL: url,
      MILLRACE_SERVICE_API_KEY: 'made-up-key',
    };
    const args = ['pull', 'orders', '--out', out];
    if (where === 'the config') {
      const service = { apiKeyHeader: 'x-other-key', paths: { orders: '/v9/other/orders' } };
      writeFileSync(config, JSON.stringify({ service, sinks: { a: { type: 'files', path: './a' } } }));
      args.push('--config', config);
    } else if (where === 'the environment') {
      env['MILLRACE_SERVICE_API_KEY_HEADER'] = 'x-other-key';
      env['MILLRACE_SERVICE_PATHS_ORDERS'] = '/v9/other/orders';
    } else args.push('--api-key-header', 'x-other-key', '--service-path', 'orders=/v9/other/orders');
    const ended = await millrace(args, { env, cwd: out });
    expect(ended.code, ended.stderr).toBe(0);
    expect(new Set(requests.map(String))).toEqual(new Set(['/v9/other/orders,made-up-key']));
  });

  test('a path that lacks its parameter is refused by name', async () => {
    const out = await temporaryFolder();
    const env = {
      MILLRACE_SERVICE_BASE_URL: 'http://127.0.0.1:9',
      MILLRACE_SERVICE_API_KEY: 'made-up',
      MILLRACE_SERVICE_PATHS_LATEST_INSURANCE: '/v9/insurance',
    };
    const { code, stderr } = await millrace(['pull', 'orders', '--out', out], { env, cwd: out });
    expect([code, stderr]).toEqual([2, expect.stringContaining('service.paths.latestInsurance')]);
    expect(stderr).toContain('{user_id}');
  });
});

function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8').split('\n').filter(Boolean);
}

/** A service that answers everything, and what it was asked: path without query, and key in another header than usual. */
async function answering(
  body: (path: string) => string,
): Promise<{ url: string; requests: [string | undefined, unknown][] }> {
  const requests: [string | undefined, unknown][] = [];
  const url = await serve((request, response) => {
    requests.push([request.url?.replace(/\?.*/, ''), request.headers['x-other-key']]);
    response.writeHead(200, { 'content-type': 'application/json' }).end(body(request.url ?? ''));
  });
  return { url, requests };
}
