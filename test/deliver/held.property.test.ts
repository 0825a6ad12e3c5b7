import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { DELIVERED, type SendResult } from '../../src/core/sink.ts';
import type { Dispatcher, DispatcherOptions } from '../../src/deliver/dispatcher.ts';
import { makeEvent } from '../support/events.ts';
import { runCount } from '../support/run-count.ts';
import { makeDispatcher } from './running.ts';
import { ArrayJournal, byType, ManualClock, ScriptedSink, until } from './support.ts';

const LIVE = new AbortController().signal;

/** One file of the sink's: what is in it is confirmed, or lost, together. */
class Part {
  readonly settled = Promise.withResolvers<void>();
  readonly keys = new Set<string>();

  constructor() {
    // An answer may not be waited for.
    this.settled.promise.catch(() => undefined);
  }
}

/**
 * A sink that keeps parts on its disk, which outlives the process. It knows again what it has, and counts what it would
 * write twice.
 */
class HoldingSink extends ScriptedSink {
  parts: Part[] = [new Part()];
  readonly placed = new Set<string>();
  flushes = 0;
  #refuses = false;

  constructor() {
    super(({ event, destination }) => this.#take(`${event.id} ${destination}`), {
      batchCount: 7,
      inFlight: 2,
    });
  }

  set down(down: boolean) {
    this.#refuses = down;
  }

  #take(key: string): SendResult {
    if (this.#refuses) return { status: 'retry', reason: 'down', sink: true };
    if (this.placed.has(key)) return DELIVERED;
    const known = this.parts.find(({ keys }) => keys.has(key));
    const part = known ?? this.parts.at(-1) ?? new Part();
    part.keys.add(key);
    return { status: 'held', until: part.settled.promise };
  }

  /** The last part takes no more. */
  seal(): void {
    this.parts.push(new Part());
  }

  confirm(at: number): void {
    const [part] = this.parts.splice(at % this.parts.length, 1);
    for (const key of part?.keys ?? []) this.placed.add(key);
    part?.settled.resolve();
    if (this.parts.length === 0) this.seal();
  }

  lose(at: number): void {
    const [part] = this.parts.splice(at % this.parts.length, 1);
    part?.settled.reject(new Error('the disk has lost it'));
    if (this.parts.length === 0) this.seal();
  }

  settle(): Promise<void> {
    this.flushes += 1;
    while (this.parts.some(({ keys }) => keys.size > 0)) this.confirm(0);
    return Promise.resolve();
  }

  /** Another process: the promises of the one before are never kept. */
  reopened(): void {
    this.parts = this.parts.map(({ keys }) => {
      const part = new Part();
      for (const key of keys) part.keys.add(key);
      return part;
    });
  }
}

const TARGETS = [
  { sink: 'a', destination: null },
  { sink: 'a', destination: 'second' },
] as const;

class World {
  readonly journal = new ArrayJournal();
  readonly sink = new HoldingSink();
  readonly clock = new ManualClock();
  readonly erased = new Set<string>();
  dispatcher!: Dispatcher;

  async start(changes: Partial<DispatcherOptions> = {}): Promise<void> {
    const dispatcher = makeDispatcher({
      journal: this.journal,
      clock: this.clock,
      retry: { initial: 10, max: 40, giveUpAfter: 0 },
      maxPending: 30,
      // As the routes do it: one in three has two destinations.
      targetsOf: byType(() => TARGETS.slice(0, 1)),
      isErased: ({ user }) => this.erased.has(user ?? ''),
      ...changes,
    });
    this.dispatcher = dispatcher;
    await dispatcher.add('a', this.sink);
    dispatcher.begin();
  }

  put(count: number): void {
    for (let n = 0; n < count; n += 1) {
      const seq = this.journal.lastSeq + 1;
      const only = seq % 3 === 0 ? { handling: { only: ['a', 'a:second'] } } : {};
      this.journal.put({ ...makeEvent({ id: `e${seq}`, user: `u${seq % 5}` }), ...only });
    }
  }

  get cursor(): number {
    return this.journal.cursors.get('a') ?? 0;
  }

  keysOf({ id, seq, user }: JournalEvent): string[] {
    if (this.erased.has(user ?? '')) return [];
    return seq % 3 === 0 ? [`${id} null`, `${id} second`] : [`${id} null`];
  }

  /** Nothing is behind the cursor that is not in its place. */
  check(): void {
    for (const event of this.journal.events.slice(0, this.cursor))
      for (const key of this.keysOf(event))
        if (!this.sink.placed.has(key))
          throw new Error(`the cursor is at ${this.cursor}, but ${key} is not there`);
  }

  async turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      this.check();
    }
  }
}

type Step = fc.AsyncCommand<object, World>;

function step(name: string, run: (world: World) => Promise<void> | void): Step {
  return {
    check: () => true,
    run: async (_, world) => {
      await run(world);
      world.check();
    },
    toString: () => name,
  };
}

const steps: fc.Arbitrary<Step>[] = [
  fc.integer({ min: 1, max: 25 }).map((count) => step(`put ${count}`, (world) => world.put(count))),
  fc.integer({ min: 1, max: 12 }).map((count) => step(`turns ${count}`, (world) => world.turns(count))),
  fc.constant(step('seal', ({ sink }) => sink.seal())),
  fc.nat(5).map((at) => step(`confirm ${at}`, ({ sink }) => sink.confirm(at))),
  fc.nat(5).map((at) => step(`lose ${at}`, ({ sink }) => sink.lose(at))),
  fc.constant(step('timer', ({ clock }) => void clock.next())),
  fc.boolean().map((down) => step(down ? 'down' : 'up', ({ sink }) => void (sink.down = down))),
  fc.nat(4).map((n) =>
    step(`erase u${n}`, (world) => {
      world.erased.add(`u${n}`);
      const upTo = world.journal.lastSeq;
      world.dispatcher.forget({ upTo, owned: ({ user }) => user === `u${n}` });
    }),
  ),
  fc.boolean().map((kill) =>
    step(kill ? 'kill' : 'stop', async (world) => {
      const stopped = new AbortController();
      if (kill) stopped.abort();
      const stopping = world.dispatcher.stop(stopped.signal);
      for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      stopped.abort();
      await stopping;
      world.sink.reopened();
      await world.start();
    }),
  ),
];

test('the cursor passes only what the sink has confirmed, over any order of holds, losses and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(steps, { maxCommands: 40 }), async (commands) => {
      const world = new World();
      await world.start();
      await fc.asyncModelRun(() => ({ model: {}, real: world }), commands);
      world.sink.down = false;
      const passed = world.dispatcher.passed('a');
      let done = false;
      void passed.then(() => (done = true));
      await until(world.clock, () => done);
      world.check();
      expect(world.cursor).toBe(world.journal.lastSeq);
      expect(world.dispatcher.status()).toMatchObject([{ held: 0, pending: 0 }]);
      await world.dispatcher.stop(LIVE);
    }),
    { numRuns: runCount({ quick: 60, long: 300 }) },
  );
});

test('held events leave the memory: many more can be held than loaded, and the status counts them apart', async () => {
  const world = new World();
  await world.start();
  world.put(1000);
  await until(world.clock, () => world.dispatcher.status()[0]?.held === 1333);
  expect(world.dispatcher.status()).toMatchObject([{ pending: 0, delivered: 0, retried: 0, dead: 0 }]);
  expect(world.cursor).toBe(0);
  world.sink.confirm(0);
  await world.turns(3);
  expect(world.cursor).toBe(1000);
  expect(world.dispatcher.status()).toMatchObject([{ held: 0, delivered: 1333 }]);
});

test('what is lost is read again and sent again, alone', async () => {
  const world = new World();
  await world.start();
  world.put(100);
  await until(world.clock, () => world.dispatcher.status()[0]?.held === 133);
  world.sink.seal();
  world.put(100);
  await until(world.clock, () => world.dispatcher.status()[0]?.held === 266);
  const sent = world.sink.batches.reduce((sum, count) => sum + count, 0);
  world.sink.lose(0);
  await world.turns(3);
  expect(world.dispatcher.status()).toMatchObject([{ held: 133, retried: 133 }]);
  await until(world.clock, () => world.dispatcher.status()[0]?.held === 266);
  expect(world.sink.batches.reduce((sum, count) => sum + count, 0)).toBe(sent + 133);
  world.sink.confirm(0);
  world.sink.confirm(0);
  await world.turns(3);
  expect(world.cursor).toBe(200);
});

test('what the journal has no more when it is to be sent again holds nothing back', async () => {
  const world = new World();
  await world.start();
  world.put(30);
  await until(world.clock, () => world.dispatcher.status()[0]?.held === 40);
  // A damaged record is passed over by who reads.
  const damaged = world.journal.events[7];
  world.journal.read = (after, { count }) =>
    Promise.resolve(
      world.journal.events.filter((event) => event.seq > after && event !== damaged).slice(0, count),
    );
  world.sink.lose(0);
  if (damaged !== undefined) world.sink.placed.add(`${damaged.id} null`);
  let done = false;
  void world.dispatcher.passed('a').then(() => (done = true));
  await until(world.clock, () => done);
  expect(world.cursor).toBe(30);
});

test('a sink that loses what it holds again and again is asked ever more seldom', async () => {
  const world = new World();
  await world.start({ retry: { initial: 10, max: 10_000, giveUpAfter: 0 } });
  world.put(1);
  for (let round = 0; round < 8; round += 1) {
    await until(world.clock, () => world.dispatcher.status()[0]?.held === 1);
    world.sink.lose(0);
    await world.turns(3);
  }
  const before = world.clock.monotonic();
  await until(world.clock, () => world.dispatcher.status()[0]?.held === 1);
  expect(world.clock.monotonic() - before).toBeGreaterThan(500);
});

test('waiting for settled events does not wait for the next file', async () => {
  const world = new World();
  await world.start();
  world.put(3);
  await until(world.clock, () => world.dispatcher.status()[0]?.held === 4);
  expect(world.sink.flushes).toBe(0);
  await world.dispatcher.passed('a');
  expect([world.sink.flushes, world.cursor]).toEqual([1, 3]);
});

test('waiting for sent events does not make the sink confirm them', async () => {
  const world = new World();
  await world.start();
  world.put(3);
  let sent = false;
  void world.dispatcher.passed('a', 'sent').then(() => (sent = true));
  await until(world.clock, () => sent);
  expect(world.dispatcher.status()).toMatchObject([{ held: 4, pending: 0 }]);
  expect([world.sink.flushes, world.cursor]).toEqual([0, 0]);
});

test('what closing confirms is noted before the sink is removed', async () => {
  const world = new World();
  await world.start();
  world.put(3);
  await until(world.clock, () => world.dispatcher.status()[0]?.held === 4);
  const done: string[] = [];
  world.journal.flush = () => Promise.resolve(void done.push(`flush at ${world.cursor}`));
  world.sink.close = () => world.sink.settle();
  await world.dispatcher.stop(LIVE);
  expect(done).toEqual(['flush at 0', 'flush at 3']);
});
