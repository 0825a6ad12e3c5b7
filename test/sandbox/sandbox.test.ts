import { describe, expect, onTestFinished, test } from 'vitest';
import { speedClock } from '../../src/sandbox/options.ts';
import { startSandbox } from '../../src/sandbox/start.ts';
import { sandboxCommand } from '../../src/cli/sandbox/command.ts';
import { run } from '../cli/run.ts';
import { millrace, runInside } from '../support/millrace.ts';
import { until } from '../support/until.ts';
import { DAY, HOUR, ManualClock } from '../support/manual-clock.ts';
import { Bench } from './support.ts';

test('the same seed gives the same users, meals and keys; another gives others', async () => {
  expect(await look('one')).toEqual(await look('one'));
  expect(await look('one')).not.toEqual(await look('two'));
});

test.each([
  ['a fast clock calls back early', 1000, HOUR, 3_600],
  ['waits beyond the reach of a timer work', 1, 60 * DAY, 60 * DAY],
])('%s', (_, speed, ms, after) => {
  const base = new ManualClock();
  const clock = speedClock(speed, base);
  let called = false;
  clock.after(ms, () => (called = true));
  base.advance(after - 1);
  expect(called).toBe(false);
  base.advance(1);
  expect(called).toBe(true);
  expect([clock.monotonic(), base.monotonic()]).toEqual([ms, after]);
});

describe('faults', () => {
  test('come as often as asked for, and in the same places again', async () => {
    const first = await statuses();
    expect(new Set(first)).toEqual(new Set([200, 429, 503]));
    expect(await statuses()).toEqual(first);
  });

  test('a dropped connection can lose the answer to work that was done', async () => {
    const bench = await Bench.start();
    bench.state.faults.next({ kind: 'drop-after' });
    await expect(bench.post('/v2/user', { client_user_id: 'lost' })).rejects.toThrow('fetch failed');
    expect((await bench.post('/v2/user', { client_user_id: 'lost' })).status).toBe(400);
    bench.state.faults.next({ kind: 'drop-before' });
    await expect(bench.post('/v2/user', { client_user_id: 'never' })).rejects.toThrow('fetch failed');
    expect((await bench.post('/v2/user', { client_user_id: 'never' })).status).toBe(200);
  });
});

describe('millrace sandbox', () => {
  test('prints its address and keys, and stops with its signal', async () => {
    const args = ['--port', '0', '--users', '2', '--json', '--webhook', 'http://127.0.0.1:9/made-up'];
    const { stdout, stderr } = await run(sandboxCommand, args, {}, AbortSignal.abort());
    const shown = JSON.parse(stdout) as Record<string, unknown>;
    expect(shown['url']).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(shown['api_key']).toMatch(/^sk_sandbox_/);
    expect(shown['webhook_secrets']).toEqual([expect.stringMatching(/^whsec_/)]);
    const [line] = stderr.split('\n').map((text) => JSON.parse(text || '{}') as Record<string, unknown>);
    expect(line).toMatchObject({ msg: 'listening', url: shown['url'] });
  });

  test('a given secret is not printed', async () => {
    const secret = `whsec_${Buffer.from('a secret that is given').toString('base64')}`;
    const args = ['--port', '0', '--json', '--webhook', 'http://127.0.0.1:9/'];
    for (const [name, more] of [
      ['MILLRACE_SECRET', []],
      ['OF_THIS_TEST', ['--secret-env', 'OF_THIS_TEST']],
    ] as const) {
      const env = { [name]: secret };
      const outcome = await run(sandboxCommand, [...args, ...more], env, AbortSignal.abort());
      expect(outcome.stdout + outcome.stderr).not.toContain(secret);
      // It is in use: no other was made.
      expect(JSON.parse(outcome.stdout)).not.toHaveProperty('webhook_secrets');
    }
  });

  test('a secret on the command line, where every user of the machine can read it, is refused', async () => {
    const secret = `whsec_${Buffer.alloc(24).toString('base64')}`;
    const outcome = run(sandboxCommand, ['--port', '0', '--secret', secret]);
    await expect(outcome).rejects.toThrow('use --secret-env');
    await expect(outcome).rejects.not.toThrow(secret);
  });

  test.each([
    [['--users', 'many'], '--users many'],
    [['--rate-429', '2'], '--rate-429'],
    [['--webhook', 'nowhere'], '--webhook nowhere'],
    [['--since', '2026-02-30'], 'since 2026-02-30 is not a date'],
    [['--speed', '0'], 'speed'],
  ])('%j is a usage error', async (args, text) => {
    await expect(run(sandboxCommand, ['--port', '0', ...args])).rejects.toThrow(text);
  });

  test('an address that is taken is named', async () => {
    const first = await startSandbox({ users: 1 });
    await expect(startSandbox({ users: 1, port: Number(new URL(first.url).port) })).rejects.toThrow(
      first.url.slice(7),
    );
    await first.stop();
  });
});

interface Shown {
  readonly url: string;
  readonly api_key: string;
  readonly org_management_key: string;
  readonly first_user_id: string;
}

/** `millrace sandbox` with these flags, until the test ends. */
async function sandbox(...flags: string[]): Promise<Shown> {
  let written = '';
  const args = ['sandbox', '--port', '0', '--users', '2', '--json', ...flags];
  const { exited, stop } = runInside(args, {}, (name, text) => {
    if (name === 'stdout') written += text;
  });
  onTestFinished(async () => {
    stop.abort();
    await exited;
  });
  return until('its address', () => (written.includes('\n') ? (JSON.parse(written) as Shown) : null));
}

async function call(
  { url, api_key: key, org_management_key: management }: Shown,
  path: string,
  json?: object,
): Promise<{ status: number; type: string; json: Record<string, unknown> }> {
  const response = await fetch(url + path, {
    method: json === undefined ? 'GET' : 'POST',
    headers: { 'x-service-api-key': key, 'x-management-key': management, 'content-type': 'application/json' },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  const type = response.headers.get('content-type') ?? '';
  return { status: response.status, type, json: (await response.json()) as Record<string, unknown> };
}

const JOB = '/lab_report/v1/parser/job/00000000-0000-4000-8000-000000000000';

describe('flags of millrace sandbox', () => {
  test('--plan launch: management is part of another plan', async () => {
    const closed = await call(await sandbox('--plan', 'launch'), '/management/v1/team');
    expect(closed).toMatchObject({ status: 403, json: { detail: expect.stringContaining('Scale plan') } });
    expect((await call(await sandbox(), '/management/v1/team')).status).toBe(200);
  });

  test('--beta closed: a JSON error where the team is not enabled', async () => {
    const closed = await call(await sandbox('--beta', 'closed'), JOB);
    expect(closed).toMatchObject({ status: 403, json: { detail: expect.stringContaining('closed beta') } });
    expect(closed.type).toContain('application/json');
    expect((await call(await sandbox(), JOB)).status).toBe(404);
  });

  test.each([
    [[], false],
    [['--partial-results'], true],
  ])('%j: an order passes partial results: %j', async (flags, passes) => {
    const shown = await sandbox('--speed', '1000000', ...flags);
    const [first] = (await call(shown, '/v3/lab_tests')).json as unknown as { id: string }[];
    await call(shown, '/v3/order/create', { user_id: shown.first_user_id, lab_test_id: first!.id });
    const passed = await until('the results', async () => {
      const [order] = (await call(shown, '/orders')).json['orders'] as { events: { status: string }[] }[];
      const all = order!.events.map(({ status }) => status);
      return all.some((status) => status.startsWith('completed.')) ? all : null;
    });
    expect(passed.includes('sample_with_lab.testkit.partial_results')).toBe(passes);
  });
});

test.each([
  [['pull', 'users', '--out', '.', '--loaded-at', '2026-02-30'], '--loaded-at 2026-02-30'],
  [['reconcile', '--since', '2026-02-30T10:00:00Z'], '--since 2026-02-30T10:00:00Z'],
])('%j: no such day', async (args, problem) => {
  const { code, stderr } = await millrace(args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(problem)]);
});

async function look(seed: string): Promise<unknown> {
  const bench = await Bench.start({ seed });
  const { json } = await bench.get(`/v2/summary/meal/${bench.user(5)}?start_date=2026-01-01`);
  return [bench.sandbox.apiKey, json];
}

async function statuses(): Promise<number[]> {
  const bench = await Bench.start({ faults: { rate429: 0.3, rate503: 0.2 } });
  const seen: number[] = [];
  for (let n = 0; n < 60; n += 1) seen.push((await bench.get('/v2/user?limit=1')).status);
  return seen;
}
