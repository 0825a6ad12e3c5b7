import { expect, test } from 'vitest';
import { DELIVERED, type Delivery, type SendResult, type Sink } from '../../src/core/sink.ts';
import { LONGEST_DELAY, readAnswer } from '../../src/deliver/sink-calls.ts';
import { makeEvent } from '../support/events.ts';
import { feedOf } from './running.ts';
import { LIMITS } from './support.ts';

test.each([Number.NaN, -1, Number.NEGATIVE_INFINITY, '5000', {}, null])(
  'a wait of %s is no wait: the retry goes by its own backoff',
  (delayMs) => {
    expect(readAnswer([{ status: 'retry', reason: 'x', delayMs }], 1)).toEqual([
      { status: 'retry', reason: 'x' },
    ]);
  },
);

test.each([2 ** 31, 2 ** 53, Number.POSITIVE_INFINITY])('a wait of %s is an hour, not a storm', (delayMs) => {
  expect(readAnswer([{ status: 'retry', reason: 'x', delayMs }], 1)).toEqual([
    { status: 'retry', reason: 'x', delayMs: LONGEST_DELAY },
  ]);
});

test.each([undefined, 'yes', {}, [], [DELIVERED, DELIVERED]])(
  'the whole answer %j counts as none',
  (answer) => {
    expect(() => readAnswer(answer, 1)).toThrow('the sink answered');
  },
);

test.each([
  null,
  7,
  'delivered',
  {},
  { status: 'lost' },
  { status: 'refused' },
  { status: 'refused', code: 'x' },
  { status: 'held' },
  { status: 'held', until: Date.now() },
])('the result %j settles nothing, and is the trouble of the sink', (result) => {
  expect(readAnswer([DELIVERED, result], 2)).toEqual([
    DELIVERED,
    { status: 'retry', reason: expect.stringContaining('the sink answered'), sink: true },
  ]);
});

/** Answers a call only when the test does; lists its calls in order. */
class SilentSink implements Sink {
  readonly limits = { ...LIMITS, inFlight: 1, batchCount: 1 };
  readonly asked: {
    readonly ids: string[];
    readonly signal: AbortSignal;
    answer(result: SendResult): void;
  }[] = [];

  open(): Promise<void> {
    return Promise.resolve();
  }

  send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const { promise, resolve } = Promise.withResolvers<SendResult[]>();
    const ids = batch.map(({ event }) => event.id);
    this.asked.push({ ids, signal, answer: (result) => resolve(batch.map(() => result)) });
    return promise;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function silent() {
  const sink = new SilentSink();
  return { sink, ...(await feedOf(sink, { sendTimeout: 5000 })) };
}

test('a send that is never answered is given up, and sent again before anything newer of its user', async () => {
  const { sink, journal, clock, dispatcher } = await silent();
  const asked = async (calls: number): Promise<void> => {
    for (let turn = 0; sink.asked.length < calls; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (turn % 20 === 19 && !clock.next()) throw new Error('nothing is left to happen');
    }
  };
  journal.put(makeEvent({ id: 'first' }));
  await asked(1);
  journal.put(makeEvent({ id: 'second' }));
  await asked(2);
  expect(sink.asked[0]?.signal.aborted).toBe(true);
  expect(sink.asked[1]?.ids).toEqual(['first']);
  expect(dispatcher.status()[0]).toMatchObject({
    delivered: 0,
    lastError: 'send has not answered within 5s',
    troubles: [{ code: 'unanswered', detail: expect.stringContaining('one call of send') }],
  });
  // Too late: neither a refusal nor a confirmation of that call counts any more.
  sink.asked[0]?.answer({ status: 'refused', code: 'late', reason: 'late' });
  await new Promise((resolve) => setImmediate(resolve));
  expect(journal.deadLetters).toEqual([]);
  expect(dispatcher.status()[0]).toMatchObject({ delivered: 0, dead: 0, troubles: [] });
  sink.asked[1]?.answer(DELIVERED);
  await asked(3);
  expect(sink.asked[2]?.ids).toEqual(['second']);
  sink.asked[2]?.answer(DELIVERED);
  await new Promise((resolve) => setImmediate(resolve));
  expect(journal.cursors.get('a')).toBe(2);
  await dispatcher.stop(AbortSignal.timeout(1000));
});

test('waiting for answers includes overdue calls: they may still write', async () => {
  const { sink, journal, clock, dispatcher } = await silent();
  journal.put(makeEvent({ id: 'first' }));
  while (sink.asked.length < 2) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.next();
  }
  sink.asked[1]?.answer(DELIVERED);
  expect(await dispatcher.answered(AbortSignal.abort())).toEqual(['a']);
  sink.asked[0]?.answer(DELIVERED);
  expect(await dispatcher.answered(AbortSignal.timeout(10_000))).toEqual([]);
  await dispatcher.stop(AbortSignal.timeout(1000));
});
