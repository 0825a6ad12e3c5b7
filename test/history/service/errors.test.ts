import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { newSecret } from '../../../src/core/secrets.ts';
import type { ServiceClient } from '../../../src/history/service/client.ts';
import { ServiceError } from '../../../src/history/service/errors.ts';
import type { ServiceOptions } from '../../../src/history/service/options.ts';
import { parseRetryAfter } from '../../../src/lib/retry-after.ts';
import type { Fault } from '../../../src/sandbox/faults.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { serve } from '../../support/listen.ts';
import { mealsOf, setUp } from './support.ts';

const busy = (status: number, after?: string): Fault => ({
  kind: 'answer',
  status,
  headers: after === undefined ? {} : { 'retry-after': after },
  body: { detail: 'busy' },
});

describe('detail in all its shapes becomes one error', () => {
  test.each<[string, unknown, string]>([
    ['a string', { detail: 'Not allowed' }, 'Not allowed'],
    [
      'an object with a message',
      { detail: { error_type: 'X', error_message: 'Not\nallowed' } },
      'Not allowed',
    ],
    ['an object without one', { detail: { why: 1 } }, '{"why":1}'],
    [
      'a list of problems',
      { detail: [{ loc: ['body', 'user_ids', 0], msg: 'not a UUID', type: 'uuid' }, 'and more'] },
      'body.user_ids.0: not a UUID; and more',
    ],
    ['missing', { message: 'Not allowed' }, 'Not allowed'],
    ['null', { detail: null }, 'no detail was given'],
    ['plain text', 'Closed beta.', 'Closed beta.'],
    ['nothing', '', 'no detail was given'],
    ['endless', { detail: 'x'.repeat(5000) }, `${'x'.repeat(500)}…`],
  ])('%s', async (_, body, detail) => {
    const { client, sandbox } = await setUp();
    sandbox.state.faults.next({ kind: 'answer', status: 403, body });
    const error = { name: 'ServiceError', code: 'forbidden', status: 403, detail };
    const fields = { ...error, retryable: false, retryAfterMs: null };
    await expect(client.users.list()).rejects.toMatchObject(fields);
  });

  test('ids stay out of the operation', async () => {
    const { client, user } = await setUp();
    await expect(client.users.latestInsurance(user(7))).rejects.toMatchObject({
      code: 'not_found',
      operation: 'GET /v2/user/{user_id}/insurance/latest',
    });
  });

  test.each<[string, unknown]>([
    ['not JSON', 'fine'],
    ['not an object', []],
    ['without its list', { users: null }],
  ])('a success that is %s is malformed', async (_, body) => {
    const { client, sandbox } = await setUp();
    sandbox.state.faults.next({ kind: 'answer', status: 200, body });
    await expect(client.users.list()).rejects.toMatchObject({ code: 'answer_malformed', retryable: false });
  });

  test('unknown fields and unknown values stay in answers', async () => {
    const { client, sandbox } = await setUp();
    const body = { data: [{ id: 'made-up', status: 'something new', extra: { deep: [1] } }], next: 1 };
    sandbox.state.faults.next({ kind: 'answer', status: 200, body });
    expect(await client.labs.accounts()).toEqual(body);
  });

  test.each([['same'], ['there', 'back']])(
    'cursors that lead back are an error, not an endless list',
    async (...round) => {
      const { client, sandbox } = await setUp();
      const pages = [...round, ...round, ...round].map((next_cursor): Fault => {
        return { kind: 'answer', status: 200, body: { data: [{ provider: 'made_up' }], next_cursor } };
      });
      sandbox.state.faults.next(...pages);
      const ops = Array.fromAsync(client.bulk.ops());
      await expect(ops).rejects.toMatchObject({ code: 'answer_malformed' });
    },
  );
});

describe('retries', () => {
  test('even a trigger is repeated when it was refused for now', async () => {
    const { client, sandbox, user } = await setUp();
    sandbox.state.faults.next(busy(429, '1'), busy(503, '1'), null);
    await client.bulk.trigger({ userIds: [user()], provider: 'made_up' });
    expect(sandbox.state.bulkOps.list(sandbox.teamId)).toHaveLength(1);
  });

  const page: Fault = { kind: 'answer', status: 200, body: '<html>made up</html>' };
  test.each<Fault>([{ kind: 'drop-after' }, busy(500), busy(503), busy(504), page])(
    'a trigger is not repeated when it may have been taken: %j',
    async (fault) => {
      const { client, sandbox, user, waits } = await setUp();
      sandbox.state.faults.next(fault);
      await expect(client.bulk.trigger({ userIds: [user()], provider: 'made_up' })).rejects.toMatchObject({
        retryable: true,
        maybeApplied: true,
      });
      expect(waits).toEqual([]);
    },
  );

  test.each([
    ['JSON that breaks off, in an answer that ends as if it were whole,', '{"users":[{"user_id":"00'],
    ["a proxy's page", '<!doctype html>\n<title>Sign in</title>'],
  ])('%s is asked for again', async (_, body) => {
    const { client, sandbox, waits } = await setUp({ managementKey: 'made-up', attempts: 2 });
    const cut: Fault = { kind: 'answer', status: 200, body };
    sandbox.state.faults.next(cut, null);
    expect((await client.users.list()).total).toBe(20);
    expect(waits).toHaveLength(1);
    sandbox.state.faults.next(cut, cut);
    await expect(client.users.list()).rejects.toMatchObject({ code: 'answer_malformed', retryable: true });
    // What was made must not be made twice.
    sandbox.state.faults.next(cut, null);
    const webhook = { url: 'http://127.0.0.1:9/', eventTypes: [], secret: newSecret() };
    const create = client.webhooks.create(sandbox.teamId, webhook);
    await expect(create).rejects.toMatchObject({ maybeApplied: true });
    expect(waits).toHaveLength(2);
  });

  const hang: Fault = { kind: 'hang' };
  const date = new Date(Date.UTC(2026, 10, 21, 0, 0, 10)).toUTCString();
  const redirect: Fault = { kind: 'answer', status: 302, headers: { location: '/' }, body: '' };
  test.each<[string, Partial<ServiceOptions>, (Fault | null)[], object | null, number[]]>([
    [
      'what only reads is repeated after dropped connections and server errors',
      {},
      [{ kind: 'drop-before' }, { kind: 'drop-after' }, busy(500), busy(502), null],
      null,
      [250, 500, 1000, 2000],
    ],
    [
      'attempts come to an end, and the last error is thrown',
      { attempts: 3 },
      [busy(500), busy(500), busy(500), null],
      { code: 'server_error', status: 500 },
      [250, 500],
    ],
    [
      'a Retry-After that is too long is handed to the caller',
      {},
      [busy(429, '3600')],
      { code: 'rate_limited', retryAfterMs: 3_600_000 },
      [],
    ],
    // The bucket is paused as well, which is over by the time the attempt is repeated.
    [
      '429 and 503 are repeated after Retry-After, in seconds or as a date',
      {},
      [busy(429, '7'), busy(503, date), busy(429), null],
      null,
      [7000, 3000, 1000],
    ],
    ['a redirect is not followed', {}, [redirect], { code: 'rejected', status: 302 }, []],
    ['a refusal is not repeated', {}, [busy(401)], { code: 'unauthorised' }, []],
    [
      'silence is a time-out',
      { headersTimeout: 50, attempts: 2 },
      [hang, hang],
      { code: 'timed_out', status: null },
      [250],
    ],
  ])('%s', async (_, options, faults, error, paused) => {
    const { client, sandbox, waits } = await setUp(options);
    sandbox.state.faults.next(...faults);
    if (error === null) expect((await client.users.list()).total).toBe(20);
    else await expect(client.users.list()).rejects.toMatchObject(error);
    expect(waits.map(Math.round)).toEqual(paused);
  });

  test('a service without a listener is unreachable', async () => {
    const { client, sandbox } = await setUp({ attempts: 2 });
    await sandbox.stop();
    await expect(client.users.list()).rejects.toMatchObject({ code: 'unreachable', retryable: true });
  });

  test('an answer that is cut midway is asked for again, whole', async () => {
    const whole = JSON.stringify({ users: [], total: 0 });
    let asked = 0;
    const baseUrl = await serve((_, response) => {
      asked += 1;
      response.writeHead(200, { 'content-length': whole.length });
      if (asked > 1) response.end(whole);
      else response.write(whole.slice(0, 5), () => response.destroy());
    });
    const { client, waits } = await setUp({ baseUrl });
    expect((await client.users.list()).users).toEqual([]);
    expect(waits).toHaveLength(1);
  });

  test('a stream that is cut midway ends with an error and is never resumed', async () => {
    const { client, sandbox, user, waits } = await setUp();
    sandbox.state.faults.next({ kind: 'drop-after' }, null);
    const stream = await client.users.data('mealSummary', user(), { start: '2026-01-01' });
    await expect(buffer(stream)).rejects.toMatchObject({ code: 'connection_lost', retryable: true });
    expect(waits).toEqual([]);
  });

  test('attempts of a stream are repeated until its body begins', async () => {
    const { client, sandbox, user } = await setUp();
    sandbox.state.faults.next({ kind: 'drop-before' }, busy(503), null);
    const stream = await client.users.data('mealSummary', user(), { start: '2026-01-01', end: '2026-01-01' });
    expect(JSON.parse((await buffer(stream)).toString())).toMatchObject({ meals: { length: 3 } });
  });

  test('each retry is reported', async () => {
    const retries: string[] = [];
    const { client, sandbox } = await setUp({
      onRetry: ({ operation, attempt }) => retries.push(`${operation} ${attempt}`),
    });
    sandbox.state.faults.next(busy(503), busy(503), null);
    await client.users.list();
    expect(retries).toEqual(['GET /v2/user 1', 'GET /v2/user 2']);
  });
});

describe('signals', () => {
  const reason = new Error('enough');

  test('end a call in flight with their reason', async () => {
    const { client, sandbox } = await setUp();
    sandbox.state.faults.next({ kind: 'hang' });
    const stop = new AbortController();
    setImmediate(() => stop.abort(reason));
    await expect(client.users.list({}, { signal: stop.signal })).rejects.toBe(reason);
  });

  test('end a wait, and a stream midway', async () => {
    const stop = new AbortController();
    const { client, sandbox, user } = await setUp(
      {
        signal: stop.signal,
        clock: new ManualClock(),
        onRetry: () => setImmediate(() => stop.abort(reason)),
      },
      { days: 36_500, mealsPerDay: 20, since: '1927-01-01' },
    );
    const stream = await client.users.data('mealSummary', user(), { start: '1927-01-01' });
    sandbox.state.faults.next(busy(503));
    await expect(client.users.list()).rejects.toBe(reason);
    await expect(buffer(stream)).rejects.toBe(reason);
    await expect(client.users.list()).rejects.toBe(reason);
  });
});

test('no second has more requests than the rate limit says', async () => {
  const { client, waits } = await setUp({ perSecond: 2 });
  await Promise.all(Array.from({ length: 6 }, () => client.users.list()));
  expect(waits).toEqual([1010, 1010]);
});

test.each<[string | undefined, number | null]>([
  [undefined, null],
  ['120', 120_000],
  ['0.5', 500],
  ['Sat, 21 Nov 2026 00:01:00 GMT', 60_000],
  ['Fri, 20 Nov 2026 00:00:00 GMT', 0],
  ['-5', null],
  ['soon', null],
  ['2026', 2_026_000],
])('Retry-After %s is %s ms', (value, expected) => {
  expect(parseRetryAfter(value, Date.UTC(2026, 10, 21))).toBe(expected);
});

/** A stream that is cut midway is never resumed: another call begins it again. */
async function wholeMeals(client: ServiceClient, user: string): Promise<readonly unknown[]> {
  for (;;) {
    const meals = await mealsOf(client, user, { start: '2026-01-01' }).catch((error: unknown) => {
      if (error instanceof ServiceError && error.retryable) return null;
      throw error;
    });
    if (meals !== null) return meals;
  }
}

test('under drawn faults, every user and every meal arrives once', async () => {
  const faults = { rate429: 0.1, rate503: 0.1, dropConnections: 0.2, retryAfter: 0 };
  const { client, sandbox } = await setUp({ attempts: 30 }, { users: 60, faults });
  const seen: string[] = [];
  for await (const { user_id } of client.users.all({ pageSize: 7 })) {
    expect(await wholeMeals(client, user_id)).toHaveLength(30);
    seen.push(user_id);
  }
  expect(seen).toEqual(sandbox.state.users.list(sandbox.teamId).map(({ id }) => id));
});
