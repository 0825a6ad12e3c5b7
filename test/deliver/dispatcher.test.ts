import { describe, expect, test } from 'vitest';
import { DELIVERED, type Delivery, type SendResult, type Sink } from '../../src/core/sink.ts';
import { backoff } from '../../src/deliver/retry.ts';
import { makeEvent } from '../support/events.ts';
import { makeDispatcher } from './running.ts';
import { ArrayJournal, byType, ManualClock, ScriptedSink, until } from './support.ts';

const retry = { initial: 100, max: 1000, giveUpAfter: 0 };

function build(
  sinks: Record<string, Sink>,
  { giveUpAfter = 0 } = {},
  { journal = new ArrayJournal(), clock = new ManualClock() } = {},
) {
  const dispatcher = makeDispatcher({
    journal,
    clock,
    retry: { ...retry, giveUpAfter },
    targetsOf: byType(() => Object.keys(sinks).map((sink) => ({ sink, destination: null }))),
  });
  const start = async (): Promise<void> => {
    await Promise.all(Object.entries(sinks).map(([name, sink]) => dispatcher.add(name, sink)));
    dispatcher.begin();
  };
  return { journal, clock, dispatcher, start };
}

const idsOf = (deliveries: readonly Delivery[]): string[] => deliveries.map(({ event }) => event.id);

test('every event reaches every sink its route names, and the cursor follows', async () => {
  const sinks = {
    a: new ScriptedSink(() => DELIVERED, { inFlight: 1 }),
    b: new ScriptedSink(() => DELIVERED),
  };
  const { journal, clock, dispatcher, start } = build(sinks);
  for (let n = 0; n < 200; n += 1) journal.put(makeEvent({ id: `e${n}` }));
  await start();
  await until(clock, () => journal.cursors.get('a') === 200 && journal.cursors.get('b') === 200);
  expect(idsOf(sinks.a.taken)).toEqual(journal.events.map(({ id }) => id));
  await dispatcher.stop(AbortSignal.timeout(1000));
  expect(sinks.a.closed && sinks.b.closed).toBe(true);
});

test('fault 11: a sink that is down holds back itself only, and catches up afterwards', async () => {
  let down = true;
  const broken = new ScriptedSink(() => (down ? { status: 'retry', reason: 'down', sink: true } : DELIVERED));
  const healthy = new ScriptedSink(() => DELIVERED);
  const { journal, clock, dispatcher, start } = build({ broken, healthy });
  await start();
  for (let n = 0; n < 120; n += 1) journal.put(makeEvent({ id: `e${n}` }));
  await until(clock, () => journal.cursors.get('healthy') === 120);
  expect(journal.cursors.get('broken')).toBe(0);
  expect(dispatcher.status().find(({ sink }) => sink === 'broken')).toMatchObject({
    lastError: 'down',
  });
  down = false;
  await until(clock, () => journal.cursors.get('broken') === 120);
  expect(idsOf(broken.taken)).toEqual(journal.events.map(({ id }) => id));
});

test('fault 14: a poisoned batch is halved down to the one event, and order per user is kept', async () => {
  const poisoned = 'e13';
  const sink = new ScriptedSink(() => DELIVERED);
  const send = sink.send.bind(sink);
  sink.send = (batch) => {
    if (!batch.some(({ event }) => event.id === poisoned)) return send(batch);
    return Promise.resolve(
      batch.map(() => ({ status: 'refused', code: 'bad', reason: 'bad batch', batch: true })),
    );
  };
  const { journal, clock, start } = build({ sink });
  for (let n = 0; n < 40; n += 1) journal.put(makeEvent({ id: `e${n}`, user: `user-${n % 3}` }));
  await start();
  await until(clock, () => journal.cursors.get('sink') === 40);
  expect(journal.deadLetters.map(({ event, code }) => [event.id, code])).toEqual([[poisoned, 'bad']]);
  for (const user of ['user-0', 'user-1', 'user-2']) {
    const of = (list: readonly { id: string; user: string | null }[]): string[] =>
      list.filter((event) => event.user === user && event.id !== poisoned).map(({ id }) => id);
    expect(of(sink.taken.map(({ event }) => event))).toEqual(of(journal.events));
  }
});

test('what a batch was refused with is no verdict on one event of it that was not tried alone', async () => {
  const sink = new ScriptedSink(() => DELIVERED);
  const send = sink.send.bind(sink);
  sink.send = async (batch) => {
    const results = await send(batch);
    // The far side refused both together; the answer for the second alone was not waited for.
    if (batch.length > 1) results[1] = { status: 'refused', code: 'bad', reason: 'bad batch', batch: true };
    return results;
  };
  const { journal, clock, start } = build({ sink });
  for (let n = 0; n < 2; n += 1) journal.put(makeEvent({ id: `e${n}` }));
  await start();
  await until(clock, () => journal.cursors.get('sink') === 2);
  expect(journal.deadLetters).toEqual([]);
  expect(idsOf(sink.taken)).toEqual(['e0', 'e1', 'e1']);
});

test('fault 13: an event above the limit is seen locally; its neighbours are delivered', async () => {
  const sink = new ScriptedSink(() => DELIVERED, { eventBytes: 100 });
  const { journal, clock, start } = build({ sink });
  journal.put(makeEvent({ id: 'small', body: Buffer.alloc(100) }));
  journal.put(makeEvent({ id: 'large', body: Buffer.alloc(101) }));
  journal.put(makeEvent({ id: 'next', body: Buffer.alloc(1) }));
  await start();
  await until(clock, () => journal.cursors.get('sink') === 3);
  expect(idsOf(sink.taken)).toEqual(['small', 'next']);
  expect(journal.deadLetters).toMatchObject([{ code: 'too_large', event: { id: 'large' } }]);
});

const stuck = (): ScriptedSink => new ScriptedSink(() => ({ status: 'retry', reason: 'not this one' }));
/** How long after `since`, in milliseconds. */
const died = ({ journal }: ReturnType<typeof build>, since: number): number =>
  (journal.deadLetters[0]?.diedAt ?? Number.NaN) - since;

describe('when an event that nothing takes becomes a dead letter', () => {
  test('its age decides, over restarts', async () => {
    const world = build({ sink: stuck() }, { giveUpAfter: 5000 });
    const { journal, clock } = world;
    const receivedAt = clock.now();
    journal.put(makeEvent({ receivedAt }));
    for (let life = 0; life < 3; life += 1) {
      const { dispatcher, start } = build({ sink: stuck() }, { giveUpAfter: 5000 }, { journal, clock });
      await start();
      await until(clock, () => clock.now() - receivedAt > 1500 * (life + 1));
      await dispatcher.stop(AbortSignal.abort());
    }
    const { start } = build({ sink: stuck() }, { giveUpAfter: 5000 }, { journal, clock });
    await start();
    await until(clock, () => journal.deadLetters.length === 1);
    expect(journal.deadLetters).toMatchObject([{ code: 'gave_up', reason: 'not this one' }]);
    expect(died(world, receivedAt)).toBeGreaterThanOrEqual(5000);
    expect(died(world, receivedAt)).toBeLessThan(6500);
  });

  test.each([{ only: ['sink'] }, { replayId: 'r1' }, { released: true }])(
    'one that is wanted again, %j, has its time from its first try on',
    async (handling) => {
      const world = build({ sink: stuck() }, { giveUpAfter: 5000 });
      const { journal, clock, start } = world;
      const begin = clock.now();
      journal.put({ ...makeEvent({ receivedAt: begin - 86_400_000 }), handling });
      await start();
      await until(clock, () => journal.deadLetters.length === 1);
      expect(died(world, begin)).toBeGreaterThanOrEqual(5000);
    },
  );

  test('a clock that is set an hour on or back makes nothing older', async () => {
    for (const jump of [3_600_000, -3_600_000]) {
      const world = build({ sink: stuck() }, { giveUpAfter: 5000 });
      const { journal, clock, start } = world;
      await start();
      journal.put(makeEvent({ receivedAt: clock.now() }));
      clock.offset = jump;
      const begin = clock.monotonic();
      if (jump < 0) journal.put(makeEvent({ receivedAt: clock.now() }));
      await until(clock, () => journal.deadLetters.length > 0);
      expect(clock.monotonic() - begin).toBeGreaterThanOrEqual(5000);
    }
  });
});

test('an event retried for one sink goes to that sink only', async () => {
  const sinks = { a: new ScriptedSink(() => DELIVERED), b: new ScriptedSink(() => DELIVERED) };
  const { journal, clock, start } = build(sinks);
  journal.put({ ...makeEvent({ id: 'again' }), handling: { only: ['b:place'] } });
  await start();
  await until(clock, () => journal.cursors.get('a') === 1 && journal.cursors.get('b') === 1);
  expect(sinks.a.taken).toEqual([]);
  expect(sinks.b.taken).toMatchObject([{ destination: 'place', event: { id: 'again' } }]);
});

test('stopping finishes what is loaded and leaves the rest behind the cursor', async () => {
  let down = false;
  const sink = new ScriptedSink(() => (down ? { status: 'retry', reason: 'down', sink: true } : DELIVERED));
  const { journal, clock, dispatcher, start } = build({ sink });
  await start();
  for (let n = 0; n < 30; n += 1) journal.put(makeEvent({ id: `e${n}` }));
  await until(clock, () => journal.cursors.get('sink') === 30);
  down = true;
  for (let n = 30; n < 60; n += 1) journal.put(makeEvent({ id: `e${n}` }));
  await dispatcher.stop(AbortSignal.timeout(5000));
  expect(journal.cursors.get('sink')).toBe(30);
  expect(sink.closed).toBe(true);
});

test('backoff grows, stays under its cap and keeps half of itself fixed', () => {
  expect(backoff(1, retry, () => 0)).toBe(50);
  expect(backoff(1, retry, () => 1)).toBe(100);
  expect(backoff(4, retry, () => 1)).toBe(800);
  expect(backoff(99, retry, () => 1)).toBe(1000);
});

test('fault 14: suspects go first: what its user has behind them waits, and does not overtake them', async () => {
  // As a broker that takes two events of a user in a message: they are refused together, what follows them waits.
  const sink = new ScriptedSink(() => DELIVERED);
  const send = sink.send.bind(sink);
  sink.send = async (batch) => {
    const results = await Promise.all(
      ['u', 'v'].map(async (user) => {
        const own = batch.filter(({ event }) => event.user === user);
        const message = own.slice(0, 2);
        const alone = message.length === 1;
        if (!message.some(({ event }) => event.id.endsWith('2'))) return own.length === 0 ? [] : send(own);
        return own.map((delivery): SendResult => {
          if (!message.includes(delivery)) return { status: 'retry', reason: 'waits' };
          return { status: 'refused', code: 'bad', reason: 'bad', batch: !alone };
        });
      }),
    );
    const queues = new Map([
      ['u', results[0]!],
      ['v', results[1]!],
    ]);
    return batch.map(({ event }) => queues.get(event.user!)!.shift()!);
  };
  const { journal, clock, dispatcher, start } = build({ a: sink });
  for (const n of [1, 2, 3])
    for (const user of ['u', 'v']) journal.put(makeEvent({ id: `${user}${n}`, user }));
  await start();
  await until(clock, () => journal.cursors.get('a') === 6);
  expect(journal.deadLetters.map(({ event }) => event.id).sort()).toEqual(['u2', 'v2']);
  for (const user of ['u', 'v'])
    expect(idsOf(sink.taken).filter((id) => id.startsWith(user))).toEqual([`${user}1`, `${user}3`]);
  await dispatcher.stop(AbortSignal.timeout(1000));
});

test('fault 13: pointers keep the order of a user, also where one of them has to wait', async () => {
  const sink = new ScriptedSink(() => DELIVERED, { eventBytes: 100 });
  const { journal, clock, dispatcher } = build({ a: sink });
  const ids = ['a', 'b', 'c', 'd'];
  for (const id of ids) journal.put(makeEvent({ id, body: Buffer.alloc(1000) }));
  const failing = new Set(['a', 'c']);
  await dispatcher.add('a', sink, {
    keep: ({ id, body }) => {
      if (failing.delete(id)) return Promise.reject(new Error('no room'));
      return Promise.resolve({ path: id, sha256: '', bytes: body.length });
    },
  });
  dispatcher.begin();
  await until(clock, () => journal.cursors.get('a') === 4);
  expect(idsOf(sink.taken)).toEqual(ids);
  await dispatcher.stop(AbortSignal.timeout(1000));
});
