import { expect, test } from 'vitest';
import { DELIVERED, type SendResult } from '../../src/core/sink.ts';
import { feedOf } from './running.ts';
import { ScriptedSink, until } from './support.ts';

const RETRY: SendResult = { status: 'retry', reason: 'not now' };
const REFUSES: SendResult = { status: 'retry', reason: 'refuses', sink: true };
const SECOND = 1000;
const ONE = { batchCount: 1, inFlight: 1, order: 'none' } as const;

/** A sink under `delivery.downAfter: 60s`, and what `status` says of it second by second. */
async function watched(sink: ScriptedSink) {
  const { clock, dispatcher, put, cursor } = await feedOf(sink, {
    retry: { initial: 500, max: 30_000, giveUpAfter: 0 },
    sendTimeout: 120_000,
    downAfter: 60_000,
    maxPending: 5000,
  });
  const mode = (): string => String(dispatcher.status()[0]?.mode);
  /** Lets seconds pass, with so many new events in each. @returns the modes it went through, and when */
  const pass = async (seconds: number, events = 0): Promise<string[]> => {
    const modes: string[] = [];
    for (let second = 1; second <= seconds; second += 1) {
      put(events);
      let isOver = false;
      clock.after(SECOND, () => (isOver = true));
      await until(clock, () => isOver);
      if (modes.at(-1) !== mode()) modes.push(mode());
    }
    return modes;
  };
  const after = (seconds: number): Promise<void> =>
    new Promise((resolve) => clock.after(seconds * SECOND, resolve));
  const why = (): unknown => dispatcher.status()[0]?.lastError;
  return { put, pass, mode, after, cursor, why };
}

test('fault 53: a sink that never answers is down after a minute, and up once it has answered for a minute', async () => {
  const sink = new ScriptedSink(() => DELIVERED, ONE);
  const answer = Promise.withResolvers<void>();
  const send = sink.send.bind(sink);
  sink.send = async (batch) => {
    await answer.promise;
    return send(batch);
  };
  const { pass, put, why } = await watched(sink);
  put(5);
  expect([await pass(59), why()]).toEqual([['running'], null]);
  expect([await pass(2), why()]).toEqual([['down'], 'send has not answered yet']);
  expect(await pass(600)).toEqual(['down']);
  answer.resolve();
  expect(await pass(55, 1)).toEqual(['down']);
  expect(why()).toMatch(/^it delivers again, and is up when/);
  expect(await pass(600, 1)).toEqual(['down', 'running']);
});

test('fault 53: a sink that refuses every call is down, through all its pauses', async () => {
  const sink = new ScriptedSink(() => REFUSES);
  const { pass } = await watched(sink);
  expect(await pass(900, 1)).toEqual(['running', 'down']);
  sink.answer = () => DELIVERED;
  expect(await pass(900, 1)).toEqual(['down', 'running']);
});

test('fault 53: a sink that takes one call in ten goes down once and stays down', async () => {
  const sink = new ScriptedSink((_, call) => (call % 10 === 0 ? DELIVERED : RETRY), {
    ...ONE,
    inFlight: 3,
  });
  const { pass } = await watched(sink);
  expect(await pass(900, 2)).toEqual(['running', 'down']);
  // Better, and not well: as it was.
  sink.answer = (_, call) => (call % 10 < 4 ? DELIVERED : RETRY);
  expect(await pass(900, 2)).toEqual(['down']);
  sink.answer = (_, call) => (call % 10 === 0 ? RETRY : DELIVERED);
  expect(await pass(900, 2)).toEqual(['down', 'running']);
  sink.answer = (_, call) => (call % 10 < 4 ? DELIVERED : RETRY);
  expect(await pass(900, 2)).toEqual(['running']);
});

test('a sink that answers once and hangs again stays down', async () => {
  const sink = new ScriptedSink(() => DELIVERED, ONE);
  let answers = 0;
  const send = sink.send.bind(sink);
  sink.send = async (batch) => {
    answers -= 1;
    await (answers < 0 ? new Promise(() => {}) : null);
    return send(batch);
  };
  const { pass, put, cursor } = await watched(sink);
  put(50);
  expect(await pass(90)).toEqual(['running', 'down']);
  answers = 1;
  expect(await pass(600)).toEqual(['down']);
  expect(cursor()).toBe(1);
});

test('a slow sink that delivers stays up, however much waits for it', async () => {
  const sink = new ScriptedSink(() => DELIVERED, ONE);
  const { pass, put, after, cursor } = await watched(sink);
  const send = sink.send.bind(sink);
  sink.send = async (batch) => {
    await after(50);
    return send(batch);
  };
  put(100);
  expect(await pass(900)).toEqual(['running']);
  expect(cursor()).toBeGreaterThan(15);
});

test('a sink whose calls may take an hour has an hour for the first answer', async () => {
  const sink = new ScriptedSink(() => DELIVERED, { ...ONE, sendTimeout: 3_600_000 });
  sink.send = () => new Promise(() => {});
  const { pass, put } = await watched(sink);
  put();
  expect(await pass(3500)).toEqual(['running']);
  expect(await pass(200)).toEqual(['running', 'down']);
});

test('an idle sink stays up, and one that nothing is left to wait for comes up', async () => {
  const sink = new ScriptedSink(() => DELIVERED);
  const { pass } = await watched(sink);
  expect(await pass(600)).toEqual(['running']);
  expect(await pass(1, 1)).toEqual(['running']);
  sink.answer = () => REFUSES;
  expect(await pass(1, 3)).toEqual(['running']);
  expect(await pass(300)).toEqual(['running', 'down']);
  sink.answer = () => DELIVERED;
  expect(await pass(300)).toEqual(['down', 'running']);
});

test('what becomes a dead letter was answered, and what was not tried says nothing: the sink stays up', async () => {
  const sink = new ScriptedSink(() => ({ status: 'refused', code: 'bad', reason: 'not this' }));
  const { pass } = await watched(sink);
  expect(await pass(300, 5)).toEqual(['running']);
  sink.answer = (_, call) => (call % 20 === 0 ? DELIVERED : { ...RETRY, delayMs: 500, untried: true });
  expect(await pass(300, 1)).toEqual(['running']);
});

test('a sink that could not be opened for long has its minute once it is open', async () => {
  const sink = new ScriptedSink(() => REFUSES);
  sink.openFailures = Infinity;
  const { pass, put, mode } = await watched(sink);
  put(3);
  expect(await pass(300)).toEqual(['opening']);
  sink.openFailures = 0;
  while (mode() === 'opening') await pass(1);
  expect(await pass(58)).toEqual(['running']);
  expect(await pass(60)).toEqual(['running', 'down']);
});
