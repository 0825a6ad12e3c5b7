import { describe, expect, test } from 'vitest';
import { Turns } from '../../src/sinks/http/turns.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { startDelivering } from './delivering.ts';
import { openHttp, startEndpoint, type Reply } from './http-support.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { deliver, makeContext, signal } from './support.ts';

/** Lets callbacks of settled promises run. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** One event of each of so many users. */
const ofUsers = (count: number) =>
  Array.from({ length: count }, (_, n) => deliver(n, 1, { user: `user-${n}` })).flat();

/** Takes so many turns; returns when each has come. */
function taking(turns: Turns, count: number, clock: ManualClock, onTurn: (nth: number) => void): number[] {
  const times: number[] = [];
  for (let n = 0; n < count; n += 1)
    void Promise.resolve(turns.take()).then(() => onTurn(times.push(clock.monotonic())));
  return times;
}

describe('rate', () => {
  test.each([
    { rate: 20, step: 1, concurrency: 1000 },
    { rate: 300, step: 1, concurrency: 1000 },
    { rate: 1000, step: 1, concurrency: 1000 },
    // A machine so busy that timers come late.
    { rate: 20, step: 30, concurrency: 1000 },
    { rate: 1000, step: 25, concurrency: 1000 },
    // Hardly more lanes than it takes: now and then all are taken.
    { rate: 300, step: 1, concurrency: 2 },
    { rate: 1000, step: 1, concurrency: 6 },
  ])(
    '$rate a second, looked at every $step ms, at most $concurrency: held within 5 %, and in no second passed',
    async ({ rate, step, concurrency }) => {
      const clock = new ManualClock();
      const turns = new Turns({ concurrency, rate }, 1e9, clock);
      // So long, and irregularly, is the answer on its way.
      const times = taking(turns, rate * 6, clock, (nth) => clock.after(1 + (nth % 7), () => turns.done()));
      await turn();
      while (clock.monotonic() < 5000) {
        clock.leap(step);
        await turn();
      }
      expect((times.length * 1000) / clock.monotonic() / rate).toBeGreaterThan(0.95);
      for (const from of times.filter((_, n) => n % 10 === 0)) {
        const within = times.filter((at) => at >= from && at < from + 1000).length;
        expect(within, `from ${from}`).toBeLessThanOrEqual(rate);
      }
    },
  );

  test('after a pause nothing is made up for', async () => {
    const clock = new ManualClock();
    const turns = new Turns({ concurrency: 1000, rate: 100 }, 1e9, clock);
    clock.advance(60_000);
    const times = taking(turns, 50, clock, () => undefined);
    await turn();
    expect(times.length).toBeLessThanOrEqual(5);
  });
});

test('the longest waiter has the next turn, and patience ends the wait', async () => {
  const clock = new ManualClock();
  const turns = new Turns({ concurrency: 1, rate: 0 }, 1000, clock);
  const answers: (number | string)[] = [];
  for (const n of [1, 2, 3])
    void Promise.resolve(turns.take()).then((isTurn) => answers.push(isTurn ? n : `${n} in vain`));
  await turn();
  expect(answers).toEqual([1]);
  turns.done();
  await turn();
  expect(answers).toEqual([1, 2]);
  clock.advance(1000);
  await turn();
  expect(answers).toEqual([1, 2, '3 in vain']);
  turns.done();
  expect(await turns.take()).toBe(true);
});

test('a target has as many requests at a time as it may, and no more', async () => {
  const endpoint = await startEndpoint();
  // Each waits until there are three.
  const held: (() => void)[] = [];
  endpoint.reply = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held.push(resolve);
    if (held.length === 3) for (const release of held.splice(0)) release();
    await promise;
    return 204;
  };
  const sink = await openHttp({ url: endpoint.url('/'), concurrency: 3 });
  for (const { status } of await sink.send(ofUsers(60), signal)) expect(status).toBe('delivered');
  expect([endpoint.most, endpoint.connections]).toEqual([3, 3]);
});

/** An endpoint that answers so, and sinks for it that share a context; one is open. */
async function scene(reply: Reply, options: object = {}) {
  const endpoint = await startEndpoint();
  endpoint.reply = () => reply;
  const context = makeContext();
  const open = (more: object = {}) => openHttp({ url: endpoint.url('/'), ...options, ...more }, context);
  return { endpoint, context, open, sink: await open() };
}

describe('a target in trouble', () => {
  const eight = ofUsers(8);
  const one = eight.slice(0, 1);
  const THROTTLED: Reply = [429, { 'retry-after': '30' }];

  test('is left alone, tried by one request, and works again after a success', async () => {
    const { endpoint, context, sink } = await scene(500, { concurrency: 1 });
    const results = await sink.send(eight, signal);
    expect(results.map(({ status }) => status)).toEqual(Array(8).fill('retry'));
    // The rest was not sent any more, and waits as long as the pause is.
    expect(endpoint.posts).toHaveLength(5);
    expect(results.at(-1)).toMatchObject({ delayMs: 500, sink: true });
    expect(sink.troubles()).toMatchObject([
      { code: 'target_paused', detail: expect.stringMatching(/answered 500/) as string },
    ]);
    expect(context.lines).toMatchObject([{ level: 'warn', message: 'target paused' }]);

    context.clock.advance(500);
    await sink.send(eight.slice(0, 2), signal);
    expect(endpoint.posts).toHaveLength(6);
    context.clock.advance(999);
    expect(await sink.send(one, signal)).toMatchObject([{ delayMs: 1 }]);

    endpoint.reply = () => 204;
    context.clock.advance(1);
    for (const { status } of await sink.send(eight, signal)) expect(status).toBe('delivered');
    expect(sink.troubles()).toEqual([]);
    expect(context.lines.at(-1)).toMatchObject({ level: 'info', message: 'target works again' });
  });

  test('is one trouble while it comes and goes, from its first time on', async () => {
    const { endpoint, context, sink } = await scene(429, { concurrency: 1 });
    const since = context.clock.now();
    for (let round = 0; round < 4; round += 1) {
      endpoint.reply = () => 429;
      await sink.send(one, signal);
      context.clock.advance(1000);
      endpoint.reply = () => 204;
      expect(await sink.send(one, signal)).toMatchObject([{ status: 'delivered' }]);
      if (round > 1) expect(sink.troubles()).toMatchObject([{ since: since + 1000 }]);
    }
    context.clock.advance(30_000);
    expect(sink.troubles()).toEqual([]);
  });

  test('is tried by one of many, and what failed before counts once', async () => {
    const { endpoint, context, sink } = await scene(500);
    const gate = Promise.withResolvers<void>();
    endpoint.reply = () => gate.promise.then(() => 500);
    const first = sink.send(eight, signal);
    await expect.poll(() => endpoint.open).toBe(8);
    gate.resolve();
    await first;
    context.clock.advance(500);
    const results = await sink.send(eight, signal);
    expect(endpoint.posts).toHaveLength(9);
    // The second pause, and no longer one.
    expect(results.at(-1)).toMatchObject({ delayMs: 1000 });
  });

  test('is left alone as long as it asks for', async () => {
    const { endpoint, context, sink } = await scene(THROTTLED, { concurrency: 1 });
    await sink.send(eight, signal);
    context.clock.advance(29_999);
    for (const result of await sink.send(eight, signal))
      expect(result).toMatchObject({ status: 'retry', delayMs: 1 });
    expect(endpoint.posts).toHaveLength(1);
    context.clock.advance(1);
    await sink.send(eight, signal);
    expect(endpoint.posts).toHaveLength(2);
  });

  test('is left alone by the sink that a reload makes, too, until it takes something', async () => {
    const { endpoint, context, sink, open } = await scene(THROTTLED);
    await sink.send(one, signal);
    await sink.close(signal);
    context.clock.advance(10_000);
    const after = await open({ timeout: '5s' });
    expect(await after.send(one, signal)).toMatchObject([
      { status: 'retry', delayMs: 20_000, reason: expect.stringContaining('429') },
    ]);
    expect(after.troubles()).toMatchObject([{ code: 'target_paused' }]);
    expect(endpoint.posts).toHaveLength(1);
    endpoint.reply = () => 204;
    context.clock.advance(20_000);
    expect(await after.send(one, signal)).toEqual([{ status: 'delivered' }]);
    expect((await open()).troubles()).toEqual([]);
  });

  test('is left alone although an answer from before comes in', async () => {
    const { endpoint, sink } = await scene(THROTTLED, { concurrency: 2 });
    const held = Promise.withResolvers<void>();
    endpoint.reply = async (_, __, headers) => {
      if (headers['idempotency-key'] === 'msg_0') return THROTTLED;
      await held.promise;
      return 204;
    };
    const late = sink.send(eight.slice(1, 2), signal);
    await expect.poll(() => endpoint.open).toBe(1);
    expect(await sink.send(one, signal)).toMatchObject([{ delayMs: 30_000 }]);
    held.resolve();
    expect(await late).toEqual([{ status: 'delivered' }]);
    expect(await sink.send(one, signal)).toMatchObject([{ delayMs: 30_000 }]);
    expect(endpoint.posts).toHaveLength(2);
  });

  test('is not one that has an error for some events', async () => {
    const { endpoint, sink } = await scene(204, { concurrency: 1 });
    endpoint.reply = (_, __, headers) => (headers['idempotency-key'] === 'msg_3' ? 500 : 204);
    for (let round = 0; round < 8; round += 1) {
      const results = await sink.send(eight, signal);
      expect(results.filter(({ status }) => status === 'delivered')).toHaveLength(7);
    }
    expect(sink.troubles()).toEqual([]);
  });
});

test('one that hangs does not delay another, as long as the window has room', async () => {
  const [slow, quick] = [await startEndpoint(), await startEndpoint()];
  slow.reply = () => 'hang';
  const targets = { slow: { url: slow.url('/') }, quick: { url: quick.url('/') } };
  // Its clock stands still: no waiter gives up.
  const sink = await openHttp({ targets, concurrency: 2, timeout: '1h' }, makeContext());
  const { journal, settled } = await startDelivering({ http: sink }, ({ user }) => [
    { sink: 'http', destination: user === 'quick' ? 'quick' : 'slow' },
  ]);
  for (let n = 1; n <= 90; n += 1)
    journal.put(contractEvent(n, { user: n % 9 === 0 ? 'quick' : `slow-${n}` }));
  await settled('all of the quick one', () => quick.posts.length === 10);
  expect(slow.open).toBe(2);
});
