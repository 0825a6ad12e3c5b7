import { expect, test } from 'vitest';
import { Dispatcher } from '../../src/deliver/dispatcher.ts';
import { GiveWay } from '../../src/deliver/give-way.ts';
import { makeEvent } from '../support/events.ts';
import { ArrayJournal, byType, ManualClock, ScriptedSink, silentLog, until } from './support.ts';

const ROOM = { count: 1000, bytes: 1e6 };
const BACKLOG = 50_000;

function pass(clock: ManualClock, ms: number): void {
  const end = clock.monotonic() + ms;
  clock.after(ms, () => undefined);
  while (clock.monotonic() < end) clock.next();
}

/** What a feed may read within a time, when it asks as often as it can. */
function readWithin(ms: number, { waiting = BACKLOG, inFlight = 0, comesIn = true }): number {
  const clock = new ManualClock();
  let read = 0;
  const ask = (): void => {
    for (;;) {
      const share = way.share(ROOM, waiting, inFlight);
      if (share === null || read > 100_000) return;
      read += share.count;
    }
  };
  const way = new GiveWay(clock, ask);
  for (let passed = 0; passed < ms; passed += 1) {
    if (comesIn) way.cameIn();
    ask();
    pass(clock, 1);
  }
  return read;
}

test('a sink that catches up reads less while events come in, and less still with many in flight', () => {
  // One read more than fit in between.
  expect(readWithin(1000, {})).toBe(50_000 + 250);
  expect(readWithin(1000, { inFlight: 3000 })).toBe(25_000 + 250);
});

test('without anything coming in, or without a backlog, it reads what there is room for', () => {
  expect(readWithin(10, { comesIn: false })).toBeGreaterThan(100_000);
  expect(readWithin(10, { waiting: 500 })).toBeGreaterThan(100_000);
});

test('a backlog is delivered to its end while events come in, and once none do any more', async () => {
  const journal = new ArrayJournal();
  const clock = new ManualClock();
  const sink = new ScriptedSink(() => ({ status: 'delivered' }), { batchCount: 1000 });
  const dispatcher = new Dispatcher({
    journal,
    clock,
    log: silentLog,
    retry: { initial: 100, max: 1000, giveUpAfter: 0 },
    maxPending: 5000,
    maxPendingBytes: 1e6,
    targetsOf: byType(() => [{ sink: 'a', destination: null }]),
  });
  await dispatcher.add('a', sink);
  for (let n = 1; n <= 12_000; n += 1) journal.put(makeEvent({ id: `e${n}` }));
  dispatcher.begin();
  for (let n = 1; n <= 20; n += 1) {
    journal.put(makeEvent({ id: `late ${n}` }));
    pass(clock, 5);
  }
  await until(clock, () => journal.cursors.get('a') === 12_020);
  expect(new Set(sink.taken.map(({ event }) => event.id)).size).toBe(12_020);
  await dispatcher.stop(AbortSignal.timeout(5000));
});
