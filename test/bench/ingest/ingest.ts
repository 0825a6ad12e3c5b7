import { join } from 'node:path';
import type { Flags } from '../../support/flags.ts';
import { bench, type BenchContext, FOLDER, MAIN_FLAG, ROUNDS } from '../bench.ts';
import { type Figure, median, round } from '../figures.ts';
import { bytesToDiskOf, memoryOf, MemoryWatch } from '../processes.ts';
import { lackOf, PRODUCTS, Rival, RIVALS } from '../rivals/rivals.ts';
import { inTurns } from '../rounds.ts';
import { Load, NOWHERE, type ReceiverOptions, ReceiverProcess } from './children.ts';
import { Contestant, type Lap, type Turns, twoInTurns } from './contestant.ts';
import { FIXED_RATE, figuresOf, type Latencies } from './figures.ts';
import type { LoadResult } from './load-child.ts';

/**
 * Bytes of a body, and what goes with it. Of bodies above 64 KiB that are not verified yet, a receiver holds 128
 * from one address at most, and the load has one.
 */
const BODIES = {
  '1.2k': { bytes: 1200, perRound: 50_000, connections: 256 },
  '10k': { bytes: 10_000, perRound: 20_000, connections: 256 },
  '100k': { bytes: 100_000, perRound: 3000, connections: 64 },
};

const FLAGS = {
  rivals: [
    false,
    `also measure the handlers of test/bench/rivals (go-vf needs go), and p99 at ${FIXED_RATE}/s against node-vf`,
  ],
  products: [
    false,
    'also measure Svix Bridge and Bento, where they are on the PATH; with --per-round 4000, or it takes an hour',
  ],
  rounds: ROUNDS,
  'per-round': [0, 'events of one round (0: 50000; 20000 of 10k, 3000 of 100k)'],
  connections: [0, 'keep-alive connections of the load generator (0: 256; 64 for 100k)'],
  body: ['1.2k', 'bytes of an event', Object.keys(BODIES)],
  'pace-seconds': [6, 'length of a latency run; there is one a round'],
  memory: [
    0,
    'watch memory over so many events after the rounds, instead of over the rounds; its target counts from 2000000',
  ],
  against: [
    '',
    'also measure another program, in turns, such as the src/main.ts of the tree before a change',
  ],
  schema: [false, 'also measure a receiver without the schema memory, in turns'],
  receipts: [false, 'also measure a receiver that gives receipts, in turns'],
  folder: ['', `${FOLDER[1]}; put it on the disk that is to be measured`],
  main: MAIN_FLAG,
  profile: ['', 'write a CPU profile of the receiver to this folder'],
} as const;

/** The receiver, from a signed request to a synced archive, against handlers that do less. */
export const ingest = bench(
  'signed, journaled, fsynced, routed and delivered requests a second, as a share of other handlers',
  FLAGS,
  (flags, context) => new Ingest(flags, context).measure(),
);

/** Rounds until caches are full and code is compiled; they count for nothing but the conservation of events. */
const WARM_UP = 5;

class Ingest {
  readonly #flags: Flags<typeof FLAGS>;
  readonly #context: BenchContext;
  readonly #load: Load;
  readonly #bytes: number;
  readonly #perRound: number;
  readonly #connections: number;

  constructor(flags: Flags<typeof FLAGS>, context: BenchContext) {
    const { bytes, perRound, connections } = BODIES[flags.body as keyof typeof BODIES];
    this.#flags = flags;
    this.#context = context;
    this.#load = new Load(context);
    this.#bytes = bytes;
    this.#perRound = flags['per-round'] || perRound;
    this.#connections = flags.connections || connections;
  }

  async measure(): Promise<Figure[]> {
    const { memory, body, profile, rounds } = this.#flags;
    const variants = await this.#variants();
    const receiver = await this.#receiver('receiver', { profile });
    const all = { receiver, ...(await this.#rivals()) };
    const { laps, turns, watch } = await this.#rounds(all, variants);
    const latencies = await this.#latencies(all, variants['receipts'], laps.receiver);
    const samples = memory > 0 ? await this.#watched(receiver) : watch.samples;
    const journalBytes = await this.#journalBytes();
    const kept: Record<string, { accepted: number; records: number; ids: number }> = {};
    for (const [name, { server, accepted }] of Object.entries({ ...all, ...variants })) {
      await server.end();
      const counts = await server.kept();
      if (counts !== null) kept[name] = { accepted, ...counts };
    }
    this.#context.note(`${this.#connections} connections, body ${body}, ${rounds} rounds`);
    const setting = { body, connections: this.#connections, memory };
    return figuresOf({ ...setting, laps, turns, latencies, samples, journalBytes, kept });
  }

  /** Receivers that are set up otherwise, each measured in turns with the receiver. */
  async #variants(): Promise<Readonly<Record<string, Contestant>>> {
    const { against, receipts, schema } = this.#flags;
    const options: Record<string, ReceiverOptions> = {};
    if (against !== '') options['before'] = { main: against };
    if (receipts) {
      const path = join(this.#context.folder, 'log');
      options['receipts'] = { config: { receipts: { path, origin: 'made-up.example/bench' } } };
    }
    if (schema) options['no schema'] = { config: { schema: { enabled: false } } };
    const variants: Record<string, Contestant> = {};
    for (const [name, each] of Object.entries(options)) variants[name] = await this.#receiver(name, each);
    return variants;
  }

  /** Everyone is sent the same events. Then variants of the receiver take shorter turns with it. */
  async #rounds<Name extends string>(
    all: Readonly<Record<Name | 'receiver', Contestant>>,
    variants: Readonly<Record<string, Contestant>>,
  ): Promise<{ laps: Record<Name | 'receiver', Lap[]>; turns: Record<string, Turns[]>; watch: MemoryWatch }> {
    const { rounds } = this.#flags;
    const { receiver } = all;
    const watch = new MemoryWatch(() => receiver.server.pid);
    const turns: Record<string, Turns[]> = {};
    const lapOf = (contestant: Contestant) => async (at: number) => {
      if (at <= 0 || contestant !== receiver) return contestant.lap(this.#perRound);
      watch.start();
      return contestant.lap(this.#perRound).finally(() => watch.pause());
    };
    const take = async (name: string, variant: Contestant): Promise<string> => {
      const make = (count: number): Promise<void> => this.#make(count);
      const taken = await twoInTurns(
        [variant, receiver],
        this.#perRound,
        Math.ceil(this.#perRound / 10),
        make,
      );
      (turns[name] ??= []).push(taken);
      return `${name} ${round(taken.lap.rate / taken.beside.rate, 3)} of the receiver`;
    };
    const laps = await inTurns(
      mapped(all, lapOf),
      {
        rounds,
        warmUp: WARM_UP,
        begin: () => this.#make(this.#perRound),
        end: async (at) => {
          const notes: string[] = [];
          if (at > 0)
            for (const [name, variant] of Object.entries(variants)) notes.push(await take(name, variant));
          return notes;
        },
        tell: ({ rate }) => `${round(rate)}/s`,
      },
      this.#context,
    );
    return { laps, turns, watch };
  }

  async #latencies(
    { receiver, 'node-vf': nodeVf }: Readonly<Record<string, Contestant>>,
    receipts: Contestant | undefined,
    laps: readonly Lap[],
  ): Promise<Latencies> {
    const { body, rounds, 'pace-seconds': seconds } = this.#flags;
    const half = median(laps.map(({ rate }) => rate)) / 2;
    const contenders: Record<string, () => Promise<LoadResult>> = {};
    const add = (name: string, contestant: Contestant | undefined, rate: number): void => {
      if (contestant === undefined) return;
      contenders[name] = async () => {
        await this.#make(Math.ceil(rate * seconds));
        return contestant.pace(rate);
      };
    };
    add('half', receiver, half);
    add('receipts', receipts, half);
    // A rate that events of other sizes may be too large for.
    if (body === '1.2k' && nodeVf !== undefined) {
      add('fixed', receiver, FIXED_RATE);
      add('rival', nodeVf, FIXED_RATE);
    }
    this.#context.note(`p99 at ${round(half)}/s, which is half the rate, and at ${FIXED_RATE}/s`);
    return inTurns(contenders, { rounds, tell: ({ p99 }) => `${round(p99, 1)} ms` }, this.#context);
  }

  /** @returns resident memory over many events */
  async #watched(receiver: Contestant): Promise<readonly number[]> {
    const { pid } = receiver.server;
    const watch = new MemoryWatch(() => pid);
    for (let done = 0; done < this.#flags.memory; done += this.#perRound) {
      await this.#make(this.#perRound);
      watch.start();
      await receiver.flood(this.#perRound).finally(() => watch.pause());
      this.#context.note(`${done + this.#perRound} events: ${round(memoryOf(pid))} MiB`);
    }
    return watch.samples;
  }

  /** Bytes to disk for an event that is routed nowhere; for the others the archive is written too. */
  async #journalBytes(): Promise<number> {
    const receiver = await this.#receiver('journal', { config: NOWHERE });
    const { pid } = receiver.server;
    const before = bytesToDiskOf(pid);
    await this.#make(this.#perRound);
    await receiver.flood(this.#perRound);
    return (bytesToDiskOf(pid) - before) / this.#perRound;
  }

  #receiver(name: string, options: ReceiverOptions): Promise<Contestant> {
    const { folder, atEnd } = this.#context;
    const start = async (): Promise<ReceiverProcess> => {
      const { main } = this.#flags;
      const receiver = await ReceiverProcess.start(join(folder, name), { main, ...options });
      atEnd(() => receiver.kill('SIGKILL'));
      return receiver;
    };
    return Contestant.start(start, this.#load, this.#connections);
  }

  async #rivals(): Promise<Readonly<Record<string, Contestant>>> {
    const rivals: Record<string, Contestant> = {};
    const { rivals: handlers, products } = this.#flags;
    for (const name of [...(handlers ? RIVALS : (['express'] as const)), ...(products ? PRODUCTS : [])]) {
      const lack = lackOf(name);
      if (lack === null)
        rivals[name] = await Contestant.start(
          () => Rival.start(name, this.#context),
          this.#load,
          this.#connections,
        );
      else this.#context.note(`${name} is left out: ${lack}`);
    }
    return rivals;
  }

  /** Signs what is sent next. */
  #make(count: number): Promise<void> {
    this.#context.signal.throwIfAborted();
    return this.#load.make(count, this.#bytes);
  }
}

function mapped<Name extends string, A, B>(
  all: Readonly<Record<Name, A>>,
  make: (one: A) => B,
): Record<Name, B> {
  return Object.fromEntries(Object.entries<A>(all).map(([name, one]) => [name, make(one)])) as Record<
    Name,
    B
  >;
}
