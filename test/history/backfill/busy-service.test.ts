import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makePlan } from '../../../src/history/backfill/plan.ts';
import { runBackfill } from '../../../src/history/backfill/run.ts';
import { withTries } from '../../../src/history/backfill/tries.ts';
import { systemClock, type Clock } from '../../../src/core/clock.ts';
import { ServiceClient } from '../../../src/history/service/client.ts';
import { ServiceError } from '../../../src/history/service/errors.ts';
import { serve } from '../../support/listen.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { standIn } from './stand-in.ts';
import { rowIds } from './support.ts';

/** A clock on which no wait takes time. */
const AT_ONCE: Clock = {
  ...systemClock,
  after: (_, then) => {
    const waiting = setImmediate(then);
    return () => clearImmediate(waiting);
  },
};

/** A service that answers 429 so many times, and asks for a pause. */
async function busy(times: number, retryAfter: () => string): Promise<Record<string, string>> {
  let left = times;
  const url = await serve((_, response) => {
    left -= 1;
    if (left < 0) response.writeHead(200).end('{"orders":[{"id":"made-up"}],"total":1}');
    else response.writeHead(429, { 'retry-after': retryAfter() }).end('{"detail":"made up"}');
  });
  return { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
}

const REFUSED = 'GET /orders: rate_limited (429): made up';

test('a command shows what it waits for', async () => {
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

test('a backfill reports a pause between two tries of one user', async () => {
  const fields = {
    code: 'rate_limited',
    operation: 'made up',
    status: 429,
    detail: 'x',
    retryable: true,
  } as const;
  const delays: number[] = [];
  let left = 2;
  const done = await withTries(
    () => {
      left -= 1;
      if (left >= 0) return Promise.reject(new ServiceError({ ...fields, retryAfterMs: 3_000_000 }));
      return Promise.resolve('done');
    },
    AT_ONCE,
    new AbortController().signal,
    ({ delayMs }) => delays.push(delayMs),
  );
  expect([done, delays]).toEqual(['done', [3_000_000, 3_000_000]]);
});

test.each([
  ['a service that is gone ends a backfill, and --resume continues it', true, 24],
  ['so does one that is gone for the last users', true, 4],
  ['a service that has no answer for many users in a row is asked for the others', false, 24],
])('%s', async (_, isGone, users) => {
  const service = await standIn({ users });
  const lost = new Set(service.users.slice(2, 20));
  let isBack = false;
  service.instead = (path, user) => {
    const isLost = isGone ? (service.asked.get(service.users[2] ?? '') ?? 0) > 0 : lost.has(user);
    return isLost && !isBack && (isGone || path !== '/v2/user') ? 503 : null;
  };
  const client = new ServiceClient({ baseUrl: service.url, apiKey: 'made-up', clock: AT_ONCE, attempts: 2 });
  onTestFinished(() => client.close());
  const output = await temporaryFolder();
  const range = { since: '2026-01-01', until: '2026-01-31', windowDays: 0 };
  const run = (resume: boolean) =>
    runBackfill({
      service: client,
      plan: makePlan({ users: service.users, providers: [], ...range }),
      output,
      resume,
      trigger: false,
      concurrency: 2,
      pollMs: 1,
      patienceMs: 0,
      signal: AbortSignal.timeout(60_000),
      clock: AT_ONCE,
    });
  if (isGone) await expect(run(false)).rejects.toMatchObject({ code: 'service_lost' });
  else expect(await run(false)).toMatchObject({ failed_users: [...lost], meals: 30 });
  // The last of many was not asked for, where nothing answers.
  expect(service.asked.has(service.users.at(-1) ?? '')).toBe(!isGone || users < 10);
  isBack = true;
  expect(await run(true)).toMatchObject({ failed_users: [], meals: users * 5 });
  expect(rowIds(join(output, 'meals.ndjson'))).toEqual(service.mealIds());
});
