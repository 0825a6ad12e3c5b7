import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import type { Delivery, SendResult } from '../../src/core/sink.ts';
import { CatchUp, type CatchUpLimits } from '../../src/deliver/catch-up.ts';
import { makeEvent } from '../support/events.ts';
import { makeDispatcher } from './running.ts';
import { ArrayJournal, ManualClock, ScriptedSink, until } from './support.ts';

const ROOM = { count: 1000, bytes: 1e6 };
const BACKLOG = 50_000;
const FAR = { batchCount: 1000, inFlight: 1 };

function pass(clock: ManualClock, ms: number): void {
  const end = clock.monotonic() + ms;
  clock.after(ms, () => undefined);
  while (clock.monotonic() < end) clock.next();
}

/** What a feed may read within a time, when it asks as often as it can. */
function readWithin(ms: number, { waiting = BACKLOG, comesIn = true }): number {
  const clock = new ManualClock();
  let read = 0;
  const ask = (): void => {
    for (;;) {
      const share = way.limit(ROOM, { waiting, loaded: 0 });
      if (share === null || read > 100_000) return;
      read += share.count;
    }
  };
  const way = new CatchUp(clock, FAR, ask);
  for (let passed = 0; passed < ms; passed += 1) {
    if (comesIn) way.cameIn();
    ask();
    pass(clock, 1);
  }
  return read;
}

test('a sink that catches up reads less while events come in', () => {
  expect(readWithin(999, {})).toBe(25_000);
});

test('without anything coming in, or without a backlog, it reads what there is room for', () => {
  expect(readWithin(10, { comesIn: false })).toBeGreaterThan(100_000);
  expect(readWithin(10, { waiting: 500 })).toBeGreaterThan(100_000);
});

/** The most that may go in a batch of 1,000, second by second, while events come in and this many wait. */
function mostWhile(backlog: readonly number[], sink: Partial<CatchUpLimits> = {}): number[] {
  const clock = new ManualClock();
  const way = new CatchUp(clock, { ...FAR, ...sink }, () => undefined);
  return backlog.map((waiting) => {
    way.cameIn();
    way.limit(ROOM, { waiting, loaded: 0 });
    pass(clock, 1000);
    return way.batchCount;
  });
}

test('batches are small while the backlog shrinks, and whole from when it does not', () => {
  expect(mostWhile([100_000, 90_000, 80_000, 60_000])).toEqual([200, 200, 200, 200]);
  expect(mostWhile([100_000, 97_000, 90_000, 80_000])).toEqual([200, 1000, 1000, 1000]);
  expect(mostWhile([100_000, 120_000, 140_000])).toEqual([200, 1000, 1000]);
});

test('they are small again when it shrinks so fast that a fifth of it is enough, and once it is gone', () => {
  expect(mostWhile([200_000, 200_000, 160_000, 150_000])).toEqual([200, 1000, 200, 200]);
  expect(mostWhile([20_000, 20_000, 9000, 20_000, 14_000])).toEqual([200, 1000, 1000, 200, 200]);
});

test('no more is read than the batches in flight and one more, until some of it is settled', () => {
  const way = new CatchUp(new ManualClock(), { batchCount: 1000, inFlight: 2 }, () => undefined);
  const share = (loaded: number) => way.limit(ROOM, { waiting: BACKLOG, loaded });
  expect(share(10_000)).toEqual(ROOM);
  way.cameIn();
  expect(share(600)).toBeNull();
  expect(share(599)).toEqual({ ...ROOM, count: 100 });
});

test('those of which each becomes an object are whole, and those that are small stay so', () => {
  expect(mostWhile([100_000, 90_000], { batchCount: 2000 })).toEqual([2000, 2000]);
  expect(mostWhile([100_000, 90_000, 90_000], { batchCount: 50 })).toEqual([50, 50, 50]);
});

type Answer = (delivery: Delivery) => SendResult;

const takes: Answer = () => ({ status: 'delivered' });

/** Answers after so many milliseconds of the clock, as a broker far away does. */
class FarSink extends ScriptedSink {
  readonly #clock: ManualClock;
  readonly #ms: number;

  constructor(clock: ManualClock, ms: number, answer: Answer) {
    super(answer, { batchCount: 1000, inFlight: 1 });
    this.#clock = clock;
    this.#ms = ms;
  }

  override async send(batch: readonly Delivery[]): Promise<SendResult[]> {
    const results = await super.send(batch);
    await new Promise<void>((resolve) => void this.#clock.after(this.#ms, resolve));
    return results;
  }
}

/** Knows how many events are read and not taken. */
class WatchedJournal extends ArrayJournal {
  #taken: () => number = () => 0;
  mostLoaded = 0;

  watch(taken: () => number): void {
    this.#taken = taken;
  }

  override async read(...asked: Parameters<ArrayJournal['read']>): Promise<readonly JournalEvent[]> {
    const page = await super.read(...asked);
    this.mostLoaded = Math.max(this.mostLoaded, asked[0] + page.length - this.#taken());
    return page;
  }
}

interface CaughtUp {
  readonly largest: number;
  readonly seconds: number;
  /** Events in memory at most. */
  readonly loaded: number;
}

/** How a sink with 30,000 events to catch up on does it while 2 come in each millisecond, and how long it takes. */
async function catchUp(ms: number, answer = takes): Promise<CaughtUp> {
  const journal = new WatchedJournal();
  const clock = new ManualClock();
  const sink = new FarSink(clock, ms, answer);
  journal.watch(() => sink.taken.length);
  const dispatcher = makeDispatcher({ journal, clock, maxPending: 5000 });
  await dispatcher.add('a', sink);
  for (let n = 1; n <= 30_000; n += 1) journal.put(makeEvent({ id: `e${n}`, user: `u${n}` }));
  dispatcher.begin();
  let late = 0;
  const isCaughtUp = (): boolean => journal.lastSeq - sink.taken.length < 15_000;
  while (!isCaughtUp() && clock.monotonic() < 20_000) {
    for (let n = 0; n < 10; n += 1)
      journal.put(makeEvent({ id: `late ${(late += 1)}`, user: `late ${late}` }));
    clock.after(5, () => undefined);
    const end = clock.monotonic() + 5;
    while (clock.monotonic() < end) {
      clock.next();
      for (let turn = 0; turn < 8; turn += 1) await new Promise(setImmediate);
    }
  }
  const seconds = clock.monotonic() / 1000;
  const largest = Math.max(...sink.batches);
  const loaded = journal.mostLoaded;
  await until(clock, () => journal.cursors.get('a') === journal.lastSeq);
  expect(new Set(sink.taken.map(({ event }) => event.id)).size).toBe(journal.lastSeq);
  await dispatcher.stop(AbortSignal.timeout(5000));
  return { largest, seconds, loaded };
}

test('a sink that is far away catches up with whole batches while more comes in than small ones could take', async () => {
  const { largest, seconds } = await catchUp(100);
  expect(largest).toBe(1000);
  expect(seconds).toBeLessThan(6);
});

test('one that is near catches up with small ones', async () => {
  const { largest, seconds, loaded } = await catchUp(5);
  expect(largest).toBe(200);
  expect(seconds).toBeLessThan(3);
  expect(loaded).toBeLessThan(600);
});

test('what has to be sent again later does not keep the rest from being read', async () => {
  const first = Array.from({ length: 3000 }, (_, n) => `e${n + 1}`);
  const stuck = new Set(first);
  const answer = ({ event }: Delivery): SendResult =>
    stuck.delete(event.id) ? { status: 'retry', reason: 'later', delayMs: 15_000 } : { status: 'delivered' };
  const { seconds } = await catchUp(5, answer);
  expect(seconds).toBeLessThan(10);
});
