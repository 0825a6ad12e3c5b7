import { PassThrough, Readable, Writable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Io } from '../../src/cli/io.ts';
import { runProgram } from '../../src/cli/program.ts';
import { childEnvironment, millrace } from '../support/millrace.ts';
import { until } from '../support/until.ts';

interface Shown {
  readonly url: string;
  readonly api_key: string;
  readonly org_management_key: string;
  readonly first_user_id: string;
}

/** `millrace sandbox` with these flags, until the test ends. */
async function sandbox(...flags: string[]): Promise<Shown> {
  const stopping = new AbortController();
  let written = '';
  const io: Io = {
    stdout: new Writable({
      write(chunk: Buffer, _encoding, done) {
        written += String(chunk);
        done();
      },
    }),
    stderr: new PassThrough().resume(),
    stdin: Readable.from([]),
    env: childEnvironment(),
    signal: stopping.signal,
    onHangUp: () => undefined,
    onUncaught: () => undefined,
    whenOutputIsLost: () => undefined,
    setExit: () => undefined,
  };
  const ended = runProgram(io, ['sandbox', '--port', '0', '--users', '2', '--json', ...flags]);
  onTestFinished(async () => {
    stopping.abort();
    await ended;
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

describe('millrace sandbox', () => {
  test('--plan launch: management is part of another plan', async () => {
    expect(await call(await sandbox('--plan', 'launch'), '/management/v1/team')).toMatchObject({
      status: 403,
      json: { detail: expect.stringContaining('Scale plan') as string },
    });
    expect((await call(await sandbox(), '/management/v1/team')).status).toBe(200);
  });

  test('--beta closed: a JSON error where the team is not enabled', async () => {
    expect(await call(await sandbox('--beta', 'closed'), JOB)).toMatchObject({
      status: 403,
      type: expect.stringContaining('application/json') as string,
      json: { detail: expect.stringContaining('closed beta') as string },
    });
    expect((await call(await sandbox(), JOB)).status).toBe(404);
  });

  test.each([
    [[], false],
    [['--partial-results'], true],
  ])('%j: an order passes partial results: %j', async (flags, passes) => {
    const shown = await sandbox('--speed', '1000000', ...flags);
    const [first] = (await call(shown, '/v3/lab_tests')).json['data'] as { id: string }[];
    await call(shown, '/v3/order/create', { user_id: shown.first_user_id, lab_test_id: first!.id });
    const statuses = await until('the results', async () => {
      const [order] = (await call(shown, '/orders')).json['orders'] as { events: { status: string }[] }[];
      const all = order!.events.map(({ status }) => status);
      return all.some((status) => status.startsWith('completed.')) ? all : null;
    });
    expect(statuses.includes('sample_with_lab.testkit.partial_results')).toBe(passes);
  });
});

test.each([
  [['pull', 'users', '--out', '.', '--loaded-at', '2026-02-30'], '--loaded-at 2026-02-30'],
  [['reconcile', '--since', '2026-02-30T10:00:00Z'], '--since 2026-02-30T10:00:00Z'],
])('%j: no such day', async (args, problem) => {
  const { code, stderr } = await millrace(args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(problem)]);
});
