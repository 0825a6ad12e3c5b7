import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { KeyStore } from '../../src/privacy/seal/key-store.ts';
import type { Flags } from '../support/flags.ts';
import { bench, type BenchContext, FOLDER, ROUNDS } from './bench.ts';
import { type Figure, round } from './figures.ts';
import { Load, ReceiverProcess } from './ingest/children.ts';
import { fillJournal } from './ingest/fill.ts';
import { cpuSecondsOf, mainThreadSecondsOf } from './processes.ts';
import { inTurns, ratios } from './rounds.ts';

const SINK = 'archive';
const MASTER_KEY = Buffer.alloc(32, 7);
/** Of deliveries. */
const CONNECTIONS = 32;
/** POSTs a second while it drains. */
const POSTS = 1000;
/** How much of the journal is delivered before the clock starts: by then code is compiled and threads have started. */
const WARM_UP = 0.2;

const FLAGS = {
  events: [100_000, 'events that wait in the journal, 6 KB of disk each'],
  users: [1000, 'users they are of'],
  rounds: ROUNDS,
  seconds: [1, `POSTs, ${POSTS} a second, for so long while it drains; 0 for none`, 0],
  folder: FOLDER,
} as const;

/** A sealed archive against a plain one: what a receiver does that has to catch up. */
export const sealed = bench(
  'events a second into a sealed archive, as a share of a plain one; p99 of deliveries at the same time',
  FLAGS,
  async (flags, context) => {
    const { events, users, rounds, seconds } = flags;
    const { folder, note, signal } = context;
    const journal = join(folder, 'journal');
    await fillJournal(journal, events, signal, { sink: SINK, users });
    note(`${events} events wait`);
    const drains = new Drains(flags, context);
    const rates = await inTurns(
      { plain: () => drains.drain(false), sealed: () => drains.drain(true) },
      { rounds, tell: ({ perSecond }) => `${round(perSecond)}/s` },
      context,
    );
    if (seconds === 0) return figuresOf(rates, null);
    const load = new Load(context);
    const p99s = await inTurns(
      { idle: () => drains.latency(load, null), sealed: () => drains.latency(load, journal) },
      { rounds, tell: (p99) => `p99 ${round(p99, 1)} ms` },
      context,
    );
    return figuresOf(rates, p99s);
  },
);

interface Drained {
  readonly perSecond: number;
  /** CPU time of an event, microseconds: of the thread that receives, and of all of them. */
  readonly mainUs: number;
  readonly allUs: number;
}

/** Receivers on a copy of a journal in which all events wait. */
class Drains {
  readonly #flags: Flags<typeof FLAGS>;
  readonly #context: BenchContext;

  constructor(flags: Flags<typeof FLAGS>, context: BenchContext) {
    this.#flags = flags;
    this.#context = context;
  }

  /** Until the sink has all of it. @throws Error when an event is not in the archive once */
  async drain(isSealed: boolean): Promise<Drained> {
    const { events } = this.#flags;
    const journal = join(this.#context.folder, 'journal');
    return this.#withReceiver(journal, isSealed, async (receiver, keys) => {
      const { pid } = receiver;
      const counted = await receiver.untilWaiting(events * (1 - WARM_UP));
      const before = { at: performance.now(), main: mainThreadSecondsOf(pid), all: cpuSecondsOf(pid) };
      await receiver.untilDelivered();
      const drained: Drained = {
        perSecond: (counted * 1000) / (performance.now() - before.at),
        mainUs: ((mainThreadSecondsOf(pid) - before.main) / counted) * 1e6,
        allUs: ((cpuSecondsOf(pid) - before.all) / counted) * 1e6,
      };
      await receiver.end();
      const { records, ids } = await receiver.kept(
        isSealed ? await KeyStore.read(keys, MASTER_KEY) : undefined,
      );
      if (records !== events || ids !== events)
        throw new Error(`${records} records with ${ids} ids are in the archive, of ${events} events`);
      return drained;
    });
  }

  /**
   * p99 of deliveries at an even rate, milliseconds, while a sealed sink drains.
   * @param journal null for an empty one
   * @throws Error when the journal was drained before the last of them
   */
  async latency(load: Load, journal: string | null): Promise<number> {
    return this.#withReceiver(journal, true, async (receiver) => {
      const to = { port: receiver.port, connections: CONNECTIONS };
      // Until its code is compiled.
      await load.make(POSTS);
      await load.run({ op: 'flood', ...to });
      await load.make(POSTS * this.#flags.seconds);
      const { p99 } = await load.run({ op: 'pace', ...to, rate: POSTS });
      // Asked once and afterwards: the answer takes the threads that deliveries wait for. What the posts leave waiting is less.
      if (journal !== null && (await receiver.untilWaiting(Infinity)) <= POSTS / 2)
        throw new Error('drained before the last POST: give more --events or fewer --seconds');
      return p99;
    });
  }

  async #withReceiver<T>(
    journal: string | null,
    isSealed: boolean,
    work: (receiver: ReceiverProcess, keys: string) => Promise<T>,
  ): Promise<T> {
    this.#context.signal.throwIfAborted();
    const folder = join(this.#context.folder, 'receiver');
    mkdirSync(join(folder, 'journal'), { recursive: true, mode: 0o700 });
    if (journal !== null) cpSync(journal, join(folder, 'journal'), { recursive: true });
    const keys = join(folder, 'keys');
    const encrypt = isSealed ? { encrypt: { store: keys, masterKey: MASTER_KEY.toString('base64') } } : {};
    const sinks = { [SINK]: { type: 'files', path: join(folder, 'archive'), ...encrypt } };
    const receiver = await ReceiverProcess.start(folder, { config: { sinks } });
    try {
      return await work(receiver, keys);
    } finally {
      await receiver.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

function figuresOf(
  rates: Readonly<Record<'plain' | 'sealed', readonly Drained[]>>,
  p99s: Readonly<Record<'idle' | 'sealed', readonly number[]>> | null,
): Figure[] {
  const perSecond = (drained: Drained): number => drained.perSecond;
  return [
    ...Object.entries(rates).flatMap(([name, runs]): Figure[] => [
      { name: `${name}: events`, values: runs.map(perSecond), unit: '/s', digits: 0 },
      { name: `${name}: CPU, receiving thread`, values: runs.map(({ mainUs }) => mainUs), unit: ' µs' },
      { name: `${name}: CPU, all threads`, values: runs.map(({ allUs }) => allUs), unit: ' µs' },
    ]),
    {
      name: 'sealed, as a share of plain',
      values: ratios(rates.sealed, rates.plain, perSecond),
      wanted: '≥ 0.3',
    },
    ...(p99s === null
      ? []
      : [
          { name: 'p99 with nothing to drain', values: p99s.idle, unit: ' ms' },
          { name: 'p99 while it drains', values: p99s.sealed, unit: ' ms' },
          {
            name: 'p99 while it drains, times nothing to drain',
            values: ratios(p99s.sealed, p99s.idle, (p99) => p99),
            wanted: '≤ 2' as const,
          },
        ]),
  ];
}
