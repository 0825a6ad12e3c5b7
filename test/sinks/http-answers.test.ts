import { describe, expect, test } from 'vitest';
import { openHttp, startEndpoint, type Reply } from './http-support.ts';
import { deliver, makeContext, signal } from './support.ts';

const HOUR = 3_600_000;
const DELIVERED = { status: 'delivered' };

/** An endpoint that answers so, and an open sink for it. The clock stands at 2026-11-21T03:15:02.123Z. */
async function scene(reply: Reply, options: object = {}) {
  const endpoint = await startEndpoint();
  endpoint.reply = () => reply;
  const sink = await openHttp({ url: endpoint.url('/'), timeout: '20s', ...options }, makeContext());
  return { endpoint, sink };
}

/** The result of one event after this answer of the target. */
async function answered(reply: Reply, options: object = {}): Promise<unknown> {
  const { sink } = await scene(reply, options);
  const [result] = await sink.send(deliver(1, 1), signal);
  return result;
}

const reasonLike = (pattern: RegExp): unknown => expect.stringMatching(pattern);

describe('what an answer means', () => {
  test.each([200, 201, 202, 204, 299])('%i: delivered', async (status) => {
    expect(await answered(status)).toEqual(DELIVERED);
  });

  test.each([400, 402, 409, 415, 422, 451, 499])('%i: the event is refused', async (status) => {
    const reason = reasonLike(new RegExp(`target .* answered ${status}`));
    expect(await answered(status)).toMatchObject({ status: 'refused', code: 'rejected', reason });
  });

  test('413: it is too large, so that a claim check can take its place', async () => {
    expect(await answered(413)).toMatchObject({ status: 'refused', code: 'too_large' });
  });

  test.each([401, 403, 404, 405, 407, 408, 410, 421, 425, 500, 501, 502, 504, 599])(
    '%i: sent again',
    async (status) => {
      const result = await answered(status);
      expect(result).toMatchObject({ status: 'retry' });
      expect(result).not.toHaveProperty('delayMs');
    },
  );

  test('which statuses are retried can be chosen', async () => {
    expect(await answered(404, { retry: [409] })).toMatchObject({ status: 'refused' });
    expect(await answered(409, { retry: [409] })).toMatchObject({ status: 'retry' });
  });

  test.each([301, 302, 303, 307, 308])(
    '%i: a redirect is not followed, wherever it leads',
    async (status) => {
      const elsewhere = await startEndpoint();
      const result = await answered([status, { location: elsewhere.url('/') }]);
      expect(result).toMatchObject({ status: 'retry', reason: reasonLike(/redirects are not followed/) });
      expect(elsewhere.connections).toBe(0);
    },
  );

  test.each([
    ['seconds', '7', 7000],
    ['nothing', '0', 0],
    ['a date', 'Sat, 21 Nov 2026 03:15:32 GMT', 29_877],
    ['a date of the past', 'Sat, 21 Nov 2026 03:00:00 GMT', 0],
    ['a week', '604800', HOUR],
    ['a date next year', 'Sun, 21 Nov 2027 03:15:32 GMT', HOUR],
  ])('Retry-After with %s is obeyed, up to an hour', async (_, value, delayMs) => {
    // Not 429: there the pause of the target is the wait, and has a least length.
    expect(await answered([500, { 'retry-after': value }])).toMatchObject({ status: 'retry', delayMs });
  });

  test.each([429, 503])('%i without Retry-After: a second', async (status) => {
    expect(await answered(status)).toMatchObject({ status: 'retry', delayMs: 1000 });
  });

  const LATE = { status: 'retry', reason: reasonLike(/no answer in 250 ms/) };

  test('no answer in time, none at all: sent again, and the reason has no secret of the URL', async () => {
    expect(await answered('hang', { timeout: '250ms' })).toMatchObject(LATE);
    const endpoint = await startEndpoint();
    const sink = await openHttp({ url: endpoint.url('/?token=made-up') });
    await endpoint.stop();
    const reason = reasonLike(/^(?!.*made-up).*ECONNREFUSED/);
    expect(await sink.send(deliver(1, 1), signal)).toMatchObject([{ status: 'retry', reason }]);
  });

  test.each([200, 202, 422])('fault 64: a %i that breaks off or never ends is sent again', async (status) => {
    for (const [headers, part] of [
      [{ 'content-length': '100' }, '{'],
      [{ 'content-length': String(2 ** 20) }, '{'],
      [{ 'transfer-encoding': 'chunked' }, '{'],
      [{ 'transfer-encoding': 'chunked' }, ' '.repeat(50_000)],
    ] as const)
      expect(
        await answered((response) =>
          response.writeHead(status, headers).write(part, () => response.destroy()),
        ),
      ).toMatchObject({ status: 'retry', reason: reasonLike(/^target /) });
    const endless: Reply = (response) => response.writeHead(status).write('{');
    expect(await answered(endless, { timeout: '250ms' })).toMatchObject(LATE);
  });

  test('an answer counts however long it is, and its connection is used again when it is short', async () => {
    expect(await answered((response) => response.end(Buffer.alloc(2 ** 22)))).toEqual(DELIVERED);
    const { endpoint, sink } = await scene((response) => response.end(Buffer.alloc(50_000)), {
      concurrency: 1,
    });
    for (let n = 1; n <= 3; n += 1) expect(await sink.send(deliver(n, 1), signal)).toEqual([DELIVERED]);
    expect(endpoint.connections).toBe(1);
    expect(await answered((response) => response.destroy())).toMatchObject({ status: 'retry' });
  });

  test('a route to a target that is not there waits for a better config', async () => {
    const { sink } = await scene(204);
    expect(await sink.send(deliver(1, 1, {}, 'unknown'), signal)).toMatchObject([
      { status: 'retry', reason: 'the sink has no target unknown' },
    ]);
    const detail = reasonLike(/^the sink has no target unknown, and events wait for it/);
    expect(sink.troubles()).toMatchObject([{ code: 'target_missing', detail }]);
  });

  test('an event in flight when the signal aborts is not claimed', async () => {
    const { endpoint, sink } = await scene('hang', { concurrency: 1 });
    const stop = new AbortController();
    // The second waits for its turn.
    const sent = sink.send(deliver(1, 2), stop.signal);
    await expect.poll(() => endpoint.open).toBe(1);
    stop.abort();
    const stopped = { status: 'retry', reason: 'stopped before it was confirmed' };
    expect(await sent).toEqual([stopped, stopped]);
  });
});
