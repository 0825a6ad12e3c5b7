import { describe, expect, test } from 'vitest';
import type { SendResult } from '../../src/core/sink.ts';
import { openHttp, startEndpoint, type Endpoint, type Reply } from './http-support.ts';
import { deliver, makeContext, signal } from './support.ts';

const HOUR = 3_600_000;

/** What one event is told when the target answers so. The clock stands at 2026-11-21T03:15:02.123Z. */
async function answered(
  reply: Reply,
  options: object = {},
): Promise<{ result: SendResult; endpoint: Endpoint }> {
  const endpoint = await startEndpoint();
  endpoint.reply = () => reply;
  const sink = await openHttp({ url: endpoint.url('/'), timeout: '20s', ...options }, makeContext());
  const [result] = await sink.send(deliver(1, 1), signal);
  if (result === undefined) throw new Error('no result');
  return { result, endpoint };
}

describe('what an answer means', () => {
  test.each([200, 201, 202, 204, 299])('%i: delivered', async (status) => {
    expect((await answered(status)).result).toEqual({ status: 'delivered' });
  });

  test.each([400, 402, 409, 415, 422, 451, 499])('%i: the event is refused for good', async (status) => {
    const { result } = await answered(status);
    expect(result).toMatchObject({ status: 'refused', code: 'rejected' });
    expect(result).toHaveProperty(
      'reason',
      expect.stringMatching(new RegExp(`target .* answered ${status}`)),
    );
  });

  test('413: it is too large, so that a claim check can take its place', async () => {
    expect((await answered(413)).result).toMatchObject({ status: 'refused', code: 'too_large' });
  });

  test.each([401, 403, 404, 405, 407, 408, 410, 421, 425, 500, 501, 502, 504, 599])(
    '%i: sent again',
    async (status) => {
      const { result } = await answered(status);
      expect(result).toMatchObject({ status: 'retry' });
      expect(result).not.toHaveProperty('delayMs');
    },
  );

  test('which statuses are retried can be chosen', async () => {
    expect((await answered(404, { retry: [409] })).result).toMatchObject({ status: 'refused' });
    expect((await answered(409, { retry: [409] })).result).toMatchObject({ status: 'retry' });
  });

  test.each([301, 302, 303, 307, 308])(
    '%i: a redirect is not followed, wherever it leads',
    async (status) => {
      const elsewhere = await startEndpoint();
      const { result } = await answered([status, { location: elsewhere.url('/') }]);
      expect(result).toMatchObject({ status: 'retry' });
      expect(result).toHaveProperty('reason', expect.stringMatching(/redirects are not followed/));
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
    const { result } = await answered([500, { 'retry-after': value }]);
    expect(result).toMatchObject({ status: 'retry', delayMs });
  });

  test.each([429, 503])('%i without Retry-After: a second', async (status) => {
    expect((await answered(status)).result).toMatchObject({ status: 'retry', delayMs: 1000 });
  });

  test('no answer in time, a broken one, none at all: sent again', async () => {
    expect((await answered('hang', { timeout: '250ms' })).result).toMatchObject({
      status: 'retry',
      reason: /no answer in 250 ms/,
    });
    const endpoint = await startEndpoint();
    const url = endpoint.url('/?token=made-up');
    await endpoint.stop();
    const sink = await openHttp({ url });
    const [result] = await sink.send(deliver(1, 1), signal);
    expect(result).toMatchObject({ status: 'retry' });
    expect(JSON.stringify(result)).toMatch(/ECONNREFUSED/);
    expect(JSON.stringify(result)).not.toMatch(/made-up/);
  });

  test.each([200, 202, 422])('fault 64: a %i that breaks off or never ends is sent again', async (status) => {
    const cutAfter = (headers: Record<string, string>, part: string): Reply => {
      return (response) => response.writeHead(status, headers).write(part, () => response.destroy());
    };
    for (const reply of [
      cutAfter({ 'content-length': '100' }, '{'),
      cutAfter({ 'content-length': String(2 ** 20) }, '{'),
      cutAfter({ 'transfer-encoding': 'chunked' }, '{'),
      cutAfter({ 'transfer-encoding': 'chunked' }, ' '.repeat(50_000)),
    ])
      expect((await answered(reply)).result).toMatchObject({ status: 'retry', reason: /^target / });
    const endless: Reply = (response) => response.writeHead(status).write('{');
    expect((await answered(endless, { timeout: '250ms' })).result).toMatchObject({
      status: 'retry',
      reason: /no answer in 250 ms/,
    });
  });

  test('an answer counts however long it is, and its connection is used again when it is short', async () => {
    const long = await answered((response) => response.end(Buffer.alloc(2 ** 22)));
    expect(long.result).toEqual({ status: 'delivered' });
    const endpoint = await startEndpoint();
    endpoint.reply = () => (response) => response.end(Buffer.alloc(50_000));
    const sink = await openHttp({ url: endpoint.url('/'), concurrency: 1 });
    for (let n = 1; n <= 3; n += 1)
      expect(await sink.send(deliver(n, 1), signal)).toEqual([{ status: 'delivered' }]);
    expect(endpoint.connections).toBe(1);
    expect((await answered((response) => response.destroy())).result).toMatchObject({ status: 'retry' });
  });

  test('a route to a target that is not there waits for a better config', async () => {
    const endpoint = await startEndpoint();
    const sink = await openHttp({ url: endpoint.url('/') });
    const [result] = await sink.send(deliver(1, 1, {}, 'nobody'), signal);
    expect(result).toMatchObject({ status: 'retry', reason: 'the sink has no target nobody' });
    const detail = expect.stringMatching(/^the sink has no target nobody, and events wait for it/) as unknown;
    expect(sink.troubles?.()).toMatchObject([{ code: 'target_missing', detail }]);
  });

  test('what is in flight when the sink is told to stop is not claimed', async () => {
    const endpoint = await startEndpoint();
    endpoint.reply = () => 'hang';
    const sink = await openHttp({ url: endpoint.url('/'), concurrency: 1 });
    const stop = new AbortController();
    // The second waits for its turn.
    const sent = sink.send([...deliver(1, 1), ...deliver(2, 1)], stop.signal);
    await expect.poll(() => endpoint.open).toBe(1);
    stop.abort();
    const reason = 'stopped before it was confirmed';
    expect(await sent).toEqual([
      { status: 'retry', reason },
      { status: 'retry', reason },
    ]);
  });
});
