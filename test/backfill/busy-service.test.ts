import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { withTries } from '../../src/backfill/tries.ts';
import type { Clock } from '../../src/core/clock.ts';
import { ServiceError } from '../../src/service/errors.ts';
import { listen } from '../support/listen.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';

/** A service that answers 429 so many times, and asks for a pause. */
async function busy(times: number, retryAfter: () => string): Promise<Record<string, string>> {
  let left = times;
  const server = createServer((_, response) => {
    left -= 1;
    if (left < 0) response.writeHead(200).end('{"orders":[{"id":"made-up"}],"total":1}');
    else response.writeHead(429, { 'retry-after': retryAfter() }).end('{"detail":"made up"}');
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  return { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
}

const REFUSED = 'GET /orders: rate_limited (429): made up';

test('what a command waits for is told', async () => {
  const [out, env] = [await temporaryFolder(), await busy(1, () => '1')];
  const ended = await millrace(['pull', 'orders', '--out', out], { env, cwd: out });
  expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining(`${REFUSED}; again in 2s\n`)]);
});

test('a pause that is too long to wait for is named', async () => {
  const env = await busy(1, () => new Date(Date.now() + 3_600_000).toUTCString());
  const out = await temporaryFolder();
  const ended = await millrace(['pull', 'orders', '--out', out], { env, cwd: out });
  expect([ended.code, ended.stderr]).toEqual([
    1,
    expect.stringMatching(/rate_limited \(429\): made up; it asks for a pause of (60m|1h)\n$/),
  ]);
});

test('a backfill tells of a pause between two tries at one user', async () => {
  const clock = { after: (_: number, then: () => void) => (setImmediate(then), () => undefined) };
  const fields = {
    code: 'rate_limited',
    operation: 'made up',
    status: 429,
    detail: 'x',
    retryable: true,
  } as const;
  const told: number[] = [];
  let left = 2;
  const done = await withTries(
    () => {
      left -= 1;
      if (left >= 0) return Promise.reject(new ServiceError({ ...fields, retryAfterMs: 3_000_000 }));
      return Promise.resolve('done');
    },
    clock as unknown as Clock,
    new AbortController().signal,
    ({ delayMs }) => told.push(delayMs),
  );
  expect([done, told]).toEqual(['done', [3_000_000, 3_000_000]]);
});
