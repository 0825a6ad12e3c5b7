import { expect, test } from 'vitest';
import { DELIVERED } from '../../src/core/sink.ts';
import { DeliveredLog } from '../../src/deliver/delivered-log.ts';
import { makeEvent } from '../support/events.ts';
import { makeDispatcher } from './running.ts';
import { ManualClock, ScriptedSink } from './support.ts';

const targets = [
  { sink: 'must', destination: null },
  { sink: 'may', destination: null },
];

async function build(must: ScriptedSink, may: ScriptedSink, maxBytes = 1e6) {
  const routes = { targets };
  const skipped: [string, number][] = [];
  const log = new DeliveredLog({
    isRequired: (sink) => sink === 'must',
    targetsOf: () => routes.targets,
    quarantineTo: () => null,
    maxBytes,
    onSkipped: (sink, events) => skipped.push([sink, events]),
  });
  const clock = new ManualClock();
  const dispatcher = makeDispatcher({
    journal: log,
    clock,
    maxPending: 100,
    targetsOf: () => routes.targets,
  });
  await Promise.all([dispatcher.add('must', must), dispatcher.add('may', may)]);
  dispatcher.begin();
  return { log, clock, dispatcher, skipped, routes };
}

const settled = async (promise: Promise<unknown>): Promise<boolean> => {
  let done = false;
  const note = (): void => void (done = true);
  promise.then(note, note);
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return done;
};

test('an event is answered once the required sink has it, whatever the best-effort one does', async () => {
  const must = new ScriptedSink(() => DELIVERED);
  const may = new ScriptedSink(() => ({ status: 'retry', reason: 'down', sink: true }));
  const { log, dispatcher } = await build(must, may);
  const event = makeEvent();
  expect(await log.accept(event)).toMatchObject({ status: 'accepted' });
  expect(await log.accept(event)).toEqual({ status: 'duplicate' });
  expect(must.taken).toHaveLength(1);
  await dispatcher.stop(AbortSignal.timeout(1000));
});

test('while the required sink is down nothing is answered; a repeated attempt waits for the same delivery', async () => {
  let down = true;
  const must = new ScriptedSink(() => (down ? { status: 'retry', reason: 'down', sink: true } : DELIVERED));
  const { log, clock } = await build(must, new ScriptedSink(() => DELIVERED));
  const event = makeEvent();
  const first = log.accept(event);
  const again = log.accept(event);
  expect(await settled(first)).toBe(false);
  down = false;
  while (clock.next()) if (await settled(first)) break;
  expect(await first).toMatchObject({ status: 'accepted' });
  expect(await again).toEqual({ status: 'duplicate' });
  expect(must.taken).toHaveLength(1);
});

test('an event the required sink refuses is not acknowledged, and may come again', async () => {
  let refuse = true;
  const must = new ScriptedSink(() =>
    refuse ? { status: 'refused', code: 'bad', reason: 'not this' } : DELIVERED,
  );
  const { log } = await build(must, new ScriptedSink(() => DELIVERED));
  const event = makeEvent();
  await expect(log.accept(event)).rejects.toMatchObject({ code: 'sink_refused' });
  refuse = false;
  expect(await log.accept(event)).toMatchObject({ status: 'accepted' });
});

test('memory is bounded: a required sink that is down ends in backlog_full, a best-effort one is skipped', async () => {
  const body = Buffer.alloc(400);
  const stuck = await build(alwaysDown(), new ScriptedSink(() => DELIVERED), 1000);
  const waiting = [1, 2, 3].map(() => stuck.log.accept(makeEvent({ body })));
  await expect(stuck.log.accept(makeEvent({ body }))).rejects.toMatchObject({ code: 'backlog_full' });
  expect(waiting).toHaveLength(3);

  const fast = await build(new ScriptedSink(() => DELIVERED), alwaysDown(), 1000);
  for (let n = 0; n < 10; n += 1)
    expect(await fast.log.accept(makeEvent({ body }))).toMatchObject({ status: 'accepted' });
  expect(fast.skipped.length).toBeGreaterThan(0);
  expect(fast.log.waiting.bytes).toBeLessThanOrEqual(1200);
});

function alwaysDown(): ScriptedSink {
  return new ScriptedSink(() => ({ status: 'retry', reason: 'down', sink: true }));
}

test('when a reload exchanges a required sink, what it had not confirmed is given back, and can come again', async () => {
  const may = new ScriptedSink(() => DELIVERED);
  const { log, dispatcher } = await build(alwaysDown(), may);
  const event = makeEvent();
  const first = log.accept(event);
  expect(await settled(first)).toBe(false);
  await dispatcher.remove('must', AbortSignal.abort());
  await expect(first).rejects.toMatchObject({ code: 'not_confirmed' });
  const must = new ScriptedSink(() => DELIVERED);
  await dispatcher.add('must', must);
  dispatcher.begin();
  expect(await log.accept(event)).toMatchObject({ status: 'accepted' });
  expect(must.taken.map(({ event: { id } }) => id)).toEqual([event.id]);
  expect(log.waiting.bytes).toBe(0);
});

test('when a reload reopens a best-effort sink, the events that it misses are counted', async () => {
  const { log, dispatcher, skipped } = await build(new ScriptedSink(() => DELIVERED), alwaysDown());
  for (let n = 0; n < 3; n += 1) await log.accept(makeEvent());
  await dispatcher.remove('may', AbortSignal.abort());
  expect(skipped).toEqual([['may', 3]]);
  await dispatcher.remove('must', AbortSignal.abort());
  expect(skipped).toHaveLength(1);
});

test('when no route names a required sink any more, waiting events are refused', async () => {
  const must = alwaysDown();
  const { log, routes, clock } = await build(must, new ScriptedSink(() => DELIVERED));
  // The first keeps the sink paused with a full load, so that the rest is loaded by the new routes.
  const waiting = Array.from({ length: 150 }, () => log.accept(makeEvent()));
  const all = Promise.allSettled(waiting);
  expect(await settled(all)).toBe(false);
  routes.targets = [{ sink: 'may', destination: null }];
  must.answer = () => DELIVERED;
  for (let turn = 0; turn < 50 && !(await settled(all)); turn += 1) clock.next();
  expect(await settled(all)).toBe(true);
  const results = await all;
  expect(results[0]).toMatchObject({ status: 'fulfilled' });
  expect(results[149]).toMatchObject({ status: 'rejected', reason: { code: 'not_confirmed' } });
  expect(log.waiting).toEqual({ events: 0, bytes: 0 });
});

test('what tells a repetition is the key, where a source gives one', async () => {
  const must = new ScriptedSink(() => DELIVERED);
  const { log } = await build(must, new ScriptedSink(() => DELIVERED));
  const [one, other] = [makeEvent({ id: 'same', user: 'u1' }), makeEvent({ id: 'same', user: 'u2' })];
  expect(await log.accept(one, { dedupKey: 'hub/u1/same' })).toMatchObject({ status: 'accepted' });
  expect(await log.accept(other, { dedupKey: 'hub/u2/same' })).toMatchObject({ status: 'accepted' });
  expect(await log.accept(one, { dedupKey: 'hub/u1/same' })).toEqual({ status: 'duplicate' });
  expect(must.taken.map(({ event }) => event.user)).toEqual(['u1', 'u2']);
});

test('an early repetition is known by at least 50,000 ids of late, and memory has an end', async () => {
  const log = new DeliveredLog({
    isRequired: () => true,
    targetsOf: () => [],
    quarantineTo: () => null,
    maxBytes: 1e6,
    onSkipped: () => undefined,
  });
  const body = Buffer.from('{}');
  const accept = async (n: number): Promise<string> =>
    (await log.accept(makeEvent({ id: `msg_${n}`, body }))).status;
  for (let n = 0; n < 120_000; n += 1) await accept(n);
  expect([await accept(119_999), await accept(70_000)]).toEqual(['duplicate', 'duplicate']);
  expect(await accept(0)).toBe('accepted');
});
