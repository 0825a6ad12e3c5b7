import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import { GroupCommit, type PendingEvent } from '../../src/journal/group-commit.ts';
import { makeEvent } from '../support/events.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { runCount } from '../support/run-count.ts';

const MIB = 2 ** 20;
const MOST = { count: 1024, bytes: 16 * MIB };
/** Milliseconds that an event waits at most while nothing is being committed. */
const LONGEST = 20;
const BODIES = new Map([1, 5 * MIB, 8 * MIB, 17 * MIB].map((bytes) => [bytes, Buffer.alloc(bytes)]));
const EVENT = makeEvent();

interface Added {
  readonly bytes: number;
  expected: 'nothing' | 'accepted' | 'journal_full' | 'journal_failed';
  answer: string;
}

/** The oracle: what waits, in the order it came, and the one batch that is being committed. */
interface Model {
  readonly clock: ManualClock;
  readonly all: Added[];
  readonly waiting: Added[];
  running: readonly Added[] | null;
  /** When the first of those that wait could have been committed. */
  since: number;
  readonly settled: { readonly before: readonly Added[]; over: boolean }[];
}

/** On a clock of its own; commits end when a command says so. */
class Real {
  readonly commits: GroupCommit;
  /** What a batch should not have been: it begins where no error of the test would be seen. */
  readonly wrong: string[] = [];
  end: (expected: 'accepted' | 'journal_full') => void = () => undefined;

  constructor(model: Model) {
    this.commits = new GroupCommit((batch) => this.#perform(batch, model), model.clock);
  }

  #perform(batch: readonly PendingEvent[], model: Model): Promise<() => void> {
    const events = batch.map(({ event }) => model.all[Number(event.id)] as Added);
    const next = model.waiting.splice(0, events.length);
    const bytes = events.reduce((sum, each) => sum + each.bytes, 0);
    if (model.running !== null) this.wrong.push('two at once');
    if (events.length === 0 || events.length > MOST.count) this.wrong.push(`${events.length} events`);
    if (events.length > 1 && bytes > MOST.bytes) this.wrong.push(`${bytes} bytes`);
    if (events.some((each, at) => each !== next[at])) this.wrong.push('not those that came first');
    model.running = events;
    const { promise, resolve } = Promise.withResolvers<() => void>();
    this.end = (expected) => {
      for (const each of events) each.expected = expected;
      model.running = null;
      model.since = model.clock.monotonic();
      resolve(() => {
        for (const { event, ...waiting } of batch)
          if (expected === 'accepted') waiting.resolve({ status: expected, seq: Number(event.id) });
          else waiting.reject(new MillraceError(expected, 'made-up'));
      });
    };
    return promise;
  }
}

type Command = fc.AsyncCommand<Model, Real>;

/** All that follows at once, and nothing that was put off to the end of a turn. */
const drained = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));
const turned = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function command(name: string, run: (model: Model, real: Real) => unknown): Command {
  return {
    check: () => true,
    run: async (model, real) => {
      await run(model, real);
      await drained();
      look(model, real);
    },
    toString: () => name,
  };
}

function look({ all, waiting, running, settled }: Model, { wrong }: Real): void {
  expect(wrong).toEqual([]);
  expect(all.filter(({ expected, answer }) => expected !== answer)).toEqual([]);
  for (const { before, over } of settled)
    expect(over).toBe(before.every(({ expected }) => expected !== 'nothing'));
  if (running === null) expect(waiting.length).toBeLessThan(MOST.count);
}

function add(count: number, bytes: number): Command {
  return command(`add(${count}, ${bytes})`, (model, { commits, wrong }) => {
    for (let n = 0; n < count; n += 1) {
      const added: Added = { bytes, expected: 'nothing', answer: 'nothing' };
      const id = String(model.all.push(added) - 1);
      if (model.running === null && model.waiting.length === 0) model.since = model.clock.monotonic();
      model.waiting.push(added);
      const event = { ...EVENT, id, body: BODIES.get(bytes) as Buffer };
      void commits.add({ event, handling: undefined, invalid: null, dedupKey: undefined }).then(
        (result) => {
          added.answer = result.status;
          if (!('seq' in result) || String(result.seq) !== id) wrong.push(`${id} has another's answer`);
        },
        ({ code }: MillraceError) => (added.answer = code),
      );
    }
  });
}

function end(expected: 'accepted' | 'journal_full'): Command {
  return command(`end(${expected})`, (model, real) => {
    if (model.running !== null) real.end(expected);
  });
}

const turn = (): Command => command('turn', turned);

function pass(ms: number): Command {
  return command(`pass(${ms})`, async (model) => {
    await turned();
    const { clock } = model;
    const until = clock.monotonic() + ms;
    while (clock.next(until)) await turned();
    clock.advance(until - clock.monotonic());
    if (model.running === null && model.waiting.length > 0)
      expect(clock.monotonic() - model.since).toBeLessThan(LONGEST);
  });
}

/** Commits so slow that all who send share one. */
function slow(rounds: number, senders: number, ms: number): Command {
  const steps = [add(senders, 1), pass(ms), end('accepted')];
  return command(`slow(${rounds}, ${senders}, ${ms})`, async (model, real) => {
    for (let n = 0; n < rounds; n += 1) for (const step of steps) await step.run(model, real);
  });
}

const settled = (): Command =>
  command('settled', ({ all, settled: asked }, { commits }) => {
    const one = { before: [...all], over: false };
    asked.push(one);
    void commits.settled().then(() => (one.over = true));
  });

const rejectAll = (): Command =>
  command('rejectAll', ({ waiting }, { commits }) => {
    for (const each of waiting.splice(0)) each.expected = 'journal_failed';
    commits.rejectAll(new MillraceError('journal_failed', 'made-up'));
  });

test('whatever comes, in whatever order: each event is committed once, in its turn, soon, and answered after that', async () => {
  const bytes = fc.constantFrom(1, 1, 1, ...BODIES.keys());
  const commands = fc.commands(
    [
      fc.tuple(fc.constantFrom(1, 1, 3, 20, 40, 1500), bytes).map((args) => add(...args)),
      fc.constantFrom('accepted' as const, 'accepted' as const, 'journal_full' as const).map(end),
      fc.constant(turn()),
      fc.constantFrom(0, 0.1, 1, 5, 19, 20, 20_000).map(pass),
      fc
        .tuple(fc.integer({ min: 1, max: 12 }), fc.constantFrom(4, 20, 40, 1200), fc.constantFrom(1, 30, 900))
        .map((args) => slow(...args)),
      fc.constant(settled()),
      fc.constant(rejectAll()),
    ],
    { maxCommands: 40, size: 'max' },
  );
  const property = fc.asyncProperty(commands, async (steps) => {
    const model: Model = {
      clock: new ManualClock(),
      all: [],
      waiting: [],
      running: null,
      since: 0,
      settled: [],
    };
    const real = new Real(model);
    await fc.asyncModelRun(() => ({ model, real }), steps);
    // Nothing waits for ever: whatever is left goes with the commits and the time that it takes at most.
    for (let left = model.all.length + 1; left > 0 && model.waiting.length > 0; left -= 1)
      for (const step of [pass(LONGEST), end('accepted')]) await step.run(model, real);
    for (const step of [pass(LONGEST), end('accepted')]) await step.run(model, real);
    expect(model.all.filter(({ answer }) => answer === 'nothing')).toEqual([]);
  });
  await fc.assert(property, { numRuns: runCount({ quick: 60, long: 300 }) });
});
