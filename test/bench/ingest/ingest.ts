import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench, BenchContext, BenchResult } from '../bench.ts';
import { median, round } from '../report.ts';
import { lackOf, Rival, RIVALS, type RivalName } from '../rivals/rivals.ts';
import { Load, MAIN, type ReceiverOptions, ReceiverProcess } from './children.ts';
import { Contestant, type Kept, lapOf } from './contestant.ts';
import { FIXED_RATE, type Latency, resultOf } from './figures.ts';
import { fillJournal } from './fill.ts';
import { MemoryWatch } from './memory.ts';
import { BODIES, HELP, parseOptions, type IngestOptions } from './options.ts';
import { newSecret } from './requests.ts';
import { inTurns } from './turns.ts';

/** The receiver, from a signed request to a synced archive, against handlers that do less. */
export const ingest: Bench = {
  summary: 'signed, journaled, fsynced, routed and delivered requests a second, as a share of other handlers',
  help: HELP,
  run: async (argv, context) => {
    const options = parseOptions(argv);
    pin(options.cores);
    const folder = mkdtempSync(join(options.folder ?? tmpdir(), 'millrace-bench-'));
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    process.once('exit', remove);
    try {
      return await new Ingest(options, context, folder).run();
    } finally {
      process.off('exit', remove);
      remove();
    }
  },
};

/** Rounds until caches are full and code is compiled; they count for nothing but the conservation of events. */
const WARM_UP = 5;

class Ingest {
  readonly #options: IngestOptions;
  readonly #context: BenchContext;
  readonly #folder: string;
  readonly #secret = newSecret();
  readonly #load = new Load();
  /** Those of whole rounds, the receiver's own first. */
  readonly #all: Contestant[] = [];
  /** Receivers that are set up otherwise, each measured in turns with the receiver. */
  readonly #variants: Contestant[] = [];
  readonly #cleanups: (() => Promise<void>)[] = [() => this.#load.stop()];

  constructor(options: IngestOptions, context: BenchContext, folder: string) {
    this.#options = options;
    this.#context = context;
    this.#folder = folder;
  }

  async run(): Promise<BenchResult> {
    try {
      return await this.#measure();
    } finally {
      for (const cleanup of this.#cleanups) await cleanup();
    }
  }

  async #measure(): Promise<BenchResult> {
    const { filled, against, rivals, profile, traces } = this.#options;
    if (filled > 0) await this.#fill();
    const receiver = await this.#receiver('receiver', { profile });
    if (filled > 0) await this.#receiver('filled');
    if (against !== null) await this.#receiver('before', { main: against });
    if (traces !== null) await this.#receiver('traced', { env: await this.#collector(traces) });
    if (this.#options.receipts) await this.#receiver('receipts', { env: this.#receipts() });
    if (this.#options.schema)
      await this.#receiver('no schema', { env: { MILLRACE_SCHEMA_ENABLED: 'false' } });
    for (const name of rivals ? RIVALS : (['express'] as const)) await this.#rival(name);

    const memory = new MemoryWatch(() => receiver.memory());
    await this.#rounds(memory);
    const latencies = await this.#latencies();
    const watched = this.#options.memory > 0 ? await this.#watched(receiver) : memory;
    const journalBytes = await this.#journalBytes();
    const kept = new Map<Contestant, Kept | null>();
    for (const contestant of [...this.#all, ...this.#variants])
      kept.set(contestant, await contestant.server.settle());
    return resultOf({
      options: this.#options,
      cores: availableParallelism(),
      all: this.#all,
      variants: this.#variants,
      latencies,
      memory: watched.figures(),
      journalBytes,
      kept,
    });
  }

  /** Everyone is sent the same events, and begins a round in turn. Then variants of the receiver take shorter turns with it. */
  async #rounds(memory: MemoryWatch): Promise<void> {
    const { rounds } = this.#options;
    for (let at = 1 - WARM_UP; at <= rounds; at += 1) {
      const count = await this.#make();
      const first = (at + WARM_UP) % this.#all.length;
      const said: string[] = [];
      for (const contestant of [...this.#all.slice(first), ...this.#all.slice(0, first)]) {
        this.#context.signal.throwIfAborted();
        const isWatched = at > 0 && contestant === this.#all[0];
        if (isWatched) memory.start();
        const before = contestant.cpu();
        const lap = lapOf([await contestant.flood(count)], before, contestant.cpu());
        if (isWatched) memory.pause();
        if (at > 0) contestant.laps.push(lap);
        said.push(`${contestant.name} ${round(lap.rate)}/s`);
      }
      if (at > 0) for (const variant of this.#variants) said.push(await this.#turns(variant));
      this.#note(`${at <= 0 ? 'warm-up' : `round ${at}`}: ${said.sort().join(', ')}`);
    }
  }

  /** @returns what is said of it */
  async #turns(variant: Contestant): Promise<string> {
    const { perRound, perTurn } = this.#options;
    const [receiver] = this.#all as [Contestant];
    const { lap, beside, rates } = await inTurns([variant, receiver], perRound, perTurn, (count) => {
      this.#context.signal.throwIfAborted();
      return this.#make(count);
    });
    variant.laps.push(lap);
    variant.beside.push(beside);
    variant.turns.push(...rates);
    return `${variant.name} ${round(lap.rate / beside.rate, 3)} of the receiver`;
  }

  async #latencies(): Promise<Latency[]> {
    const [receiver] = this.#all as [Contestant];
    // A rate that events of other sizes may be too large for.
    const beside =
      (this.#options.body === '1.2k' && this.#all.find(({ name }) => name === 'node-vf')) || null;
    const receipting = this.#variants.find(({ name }) => name === 'receipts');
    const half = median(receiver.laps.map(({ rate }) => rate)) / 2;
    const paced = async (contestant: Contestant, rate: number) => {
      this.#context.signal.throwIfAborted();
      await this.#make(Math.ceil(rate * this.#options.paceSeconds));
      return contestant.pace(rate);
    };
    const found: Latency[] = [];
    for (let at = 1; at <= this.#options.rounds; at += 1) {
      const atHalf = await paced(receiver, half);
      const rival = beside === null ? null : await paced(beside, FIXED_RATE);
      const fixed = beside === null ? null : await paced(receiver, FIXED_RATE);
      const receipts = receipting === undefined ? null : await paced(receipting, half);
      found.push({ half: atHalf, receipts, fixed, rival });
      const pair =
        fixed === null
          ? ''
          : `, at ${FIXED_RATE}/s ${round(fixed.p99, 1)} and ${beside?.name} ${round(rival?.p99 ?? 0, 1)}`;
      const more = receipts === null ? '' : `, with receipts ${round(receipts.p99, 1)} ms`;
      this.#note(`p99 at ${round(half)}/s ${round(atHalf.p99, 1)} ms${more}${pair}`);
    }
    return found;
  }

  async #watched(process: ReceiverProcess): Promise<MemoryWatch> {
    const [receiver] = this.#all as [Contestant];
    const memory = new MemoryWatch(() => process.memory());
    for (let done = 0; done < this.#options.memory; done += this.#options.perRound) {
      this.#context.signal.throwIfAborted();
      const count = await this.#make();
      memory.start();
      await receiver.flood(count);
      memory.pause();
      this.#note(`${done + count} events: ${round(process.memory())} MiB`);
    }
    return memory;
  }

  /** Bytes to disk for an event that is routed nowhere; for the others the archive is written too. */
  async #journalBytes(): Promise<number> {
    const folder = this.#made('journal');
    const receiver = await ReceiverProcess.start({
      folder,
      secret: this.#secret,
      profile: null,
      routed: false,
      main: this.#options.main ?? MAIN,
    });
    this.#cleanups.push(() => receiver.kill());
    const contestant = new Contestant('journal', receiver, this.#load, this.#options.connections);
    const before = receiver.bytesToDisk();
    const count = await this.#make();
    await contestant.flood(count);
    const bytes = receiver.bytesToDisk() - before;
    await receiver.kill();
    return bytes / count;
  }

  async #fill(): Promise<void> {
    const { filled } = this.#options;
    const started = performance.now();
    const progress = (done: number): void => {
      if (done % 262_144 === 0) this.#note(`filled ${done} of ${filled}`);
    };
    await fillJournal(join(this.#folder, 'filled', 'journal'), filled, progress, this.#context.signal);
    this.#note(`filled ${filled} events in ${round((performance.now() - started) / 1000)} s`);
  }

  async #receiver(
    name: 'receiver' | 'filled' | 'before' | 'traced' | 'receipts' | 'no schema',
    {
      profile = null,
      env = {},
      main = this.#options.main ?? MAIN,
    }: Partial<Pick<ReceiverOptions, 'main' | 'profile' | 'env'>> = {},
  ): Promise<ReceiverProcess> {
    const folder = this.#made(name);
    const receiver = await ReceiverProcess.start({
      folder,
      secret: this.#secret,
      profile,
      env,
      main,
    });
    this.#cleanups.push(() => receiver.kill());
    const others = name === 'receiver' ? this.#all : this.#variants;
    others.push(new Contestant(name, receiver, this.#load, this.#options.connections));
    return receiver;
  }

  /** Takes traces, and throws them away. @returns what a receiver exports its own by */
  async #collector(share: number): Promise<Readonly<Record<string, string>>> {
    const server = createServer((request, response) => {
      request.resume().once('end', () => void response.end());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    // Once the receivers have stopped.
    this.#cleanups.unshift(async () => {
      server.close();
      server.closeAllConnections();
    });
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: String(share),
    };
  }

  #receipts(): Readonly<Record<string, string>> {
    return {
      MILLRACE_RECEIPTS_PATH: this.#made('log'),
      MILLRACE_RECEIPTS_ORIGIN: 'made-up.example/bench',
    };
  }

  async #rival(name: RivalName): Promise<void> {
    const lack = lackOf(name);
    if (lack !== null) return this.#note(`${name} is left out: ${lack}`);
    const rival = await Rival.start(name, this.#made(name), this.#secret);
    this.#cleanups.push(() => rival.stop());
    const [receiver] = this.#all as [Contestant];
    this.#all.push(new Contestant(name, rival, this.#load, this.#options.connections, receiver.laps));
  }

  #made(name: string): string {
    const folder = join(this.#folder, name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** Signs what is sent next. */
  async #make(count = this.#options.perRound): Promise<number> {
    await this.#load.make(count, this.#secret, BODIES[this.#options.body].bytes);
    return count;
  }

  #note(line: string): void {
    this.#context.note(line);
  }
}

/** Processes that are started from here on run where this one does. */
function pin(cores: string | null): void {
  if (cores === null) return;
  const { status } = spawnSync('taskset', ['-a', '-p', '-c', cores, String(process.pid)], {
    stdio: 'ignore',
  });
  if (status !== 0) throw new TypeError(`--cores ${cores}: taskset cannot set that`);
}
