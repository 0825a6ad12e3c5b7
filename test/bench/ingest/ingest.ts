import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench, BenchContext, BenchResult, Target } from '../bench.ts';
import { median, round } from '../report.ts';
import { Load, ReceiverProcess, startExpress } from './children.ts';
import { countArchive } from './count-archive.ts';
import { fillJournal } from './fill.ts';
import type { LoadResult } from './load-child.ts';
import { MemoryWatch } from './memory.ts';
import { HELP, parseOptions, type IngestOptions } from './options.ts';
import { newSecret } from './requests.ts';

/** The receiver, from a signed request to a synced archive, against an express handler that keeps nothing. */
export const ingest: Bench = {
  summary: 'signed, journaled, fsynced, routed and delivered requests a second, as a share of bare express',
  help: HELP,
  run: async (argv, context) => {
    const options = parseOptions(argv);
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

/** One receiver under test, and what has been measured on it. */
interface Subject {
  readonly receiver: ReceiverProcess;
  readonly memory: MemoryWatch;
  /** Answers a second, by round. */
  readonly rates: number[];
  /** Events a second from the first request until the last one is in the archive, by round. */
  readonly deliveredRates: number[];
  /** What express did just before, by round: both halves of a ratio have seen the same machine. */
  readonly expressRates: number[];
  accepted: number;
}

class Ingest {
  readonly #options: IngestOptions;
  readonly #context: BenchContext;
  readonly #folder: string;
  readonly #secret = newSecret();
  readonly #cleanups: (() => Promise<void>)[] = [];

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
    const { rounds, perRound, connections, paceSeconds, filled, workers } = this.#options;
    if (filled > 0) await this.#fill();
    const express = await startExpress();
    this.#cleanups.push(() => express.stop());
    const load = new Load();
    this.#cleanups.push(() => load.stop());
    const fresh = await this.#subject('fresh');
    const full = filled > 0 ? await this.#subject('filled') : null;
    const several = workers > 1 ? await this.#subject('workers', workers) : null;
    const subjects = [fresh, full, several].filter((subject) => subject !== null);

    for (let at = 1 - WARM_UP; at <= rounds; at += 1) {
      const name = at <= 0 ? 'warm-up' : `round ${at}`;
      for (const subject of subjects) {
        this.#context.signal.throwIfAborted();
        await load.make(perRound, this.#secret);
        const plain = perSecond(await load.run({ op: 'flood', port: express.port, connections }), perRound);
        await this.#flood(load, subject, at > 0);
        if (at > 0) subject.expressRates.push(plain);
        const rate = at <= 0 ? '' : `, receiver ${round(subject.rates.at(-1) ?? 0)}/s`;
        const which =
          subject === full ? ', filled journal' : subject === several ? `, ${workers} workers` : '';
        this.#note(`${name}${which}: express ${round(plain)}/s${rate}`);
      }
    }

    const half = median(fresh.rates) / 2;
    await load.make(Math.ceil(half * paceSeconds), this.#secret);
    const paced = await this.#load(fresh, () =>
      load.run({ op: 'pace', port: fresh.receiver.port, connections, rate: half }),
    );
    this.#note(`at ${round(half)}/s: p99 ${round(paced.p99, 1)} ms`);
    await load.stop();
    await express.stop();
    const counts = await Promise.all(subjects.map((subject) => this.#settle(subject)));
    return this.#result({ fresh, full, several, paced, half, counts });
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

  async #subject(name: string, workers = 1): Promise<Subject> {
    const folder = join(this.#folder, name);
    mkdirSync(folder, { recursive: true });
    const profile = name === 'fresh' ? this.#options.profile : null;
    const receiver = await ReceiverProcess.start({ folder, secret: this.#secret, workers, profile });
    this.#cleanups.push(() => receiver.kill());
    const memory = new MemoryWatch(() => receiver.memory());
    return { receiver, memory, rates: [], deliveredRates: [], expressRates: [], accepted: 0 };
  }

  async #flood(load: Load, subject: Subject, counts: boolean): Promise<void> {
    const { connections, perRound } = this.#options;
    const { port } = subject.receiver;
    const started = performance.now();
    const result = await this.#load(subject, () => load.run({ op: 'flood', port, connections }), counts);
    if (!counts) return;
    subject.rates.push(perSecond(result, perRound));
    subject.deliveredRates.push((perRound * 1000) / (performance.now() - started));
  }

  /** Puts load on a receiver and waits until all of it is delivered. */
  async #load(subject: Subject, run: () => Promise<LoadResult>, watch = true): Promise<LoadResult> {
    if (watch) subject.memory.start();
    try {
      const result = await run();
      subject.accepted += result.statuses['202'] ?? 0;
      return result;
    } finally {
      subject.memory.pause();
      await subject.receiver.untilDelivered();
    }
  }

  /** Ends the receiver in order and counts what it has delivered. */
  async #settle({ receiver }: Subject): Promise<{ records: number; ids: number }> {
    await receiver.stop();
    return countArchive(receiver.archive);
  }

  #result(measured: {
    fresh: Subject;
    full: Subject | null;
    several: Subject | null;
    paced: LoadResult;
    half: number;
    counts: readonly { records: number; ids: number }[];
  }): BenchResult {
    const { fresh, full, several, paced, half } = measured;
    const express = median(fresh.expressRates);
    const ratio = medianRatio(fresh.rates, fresh.expressRates);
    const deliveredRatio = medianRatio(fresh.deliveredRates, fresh.expressRates);
    const rate = median(fresh.rates);
    const delivered = median(fresh.deliveredRates);
    const memory = fresh.memory.figures();
    const growth = memory.lastMiB / memory.firstMiB - 1;
    const accepted = fresh.accepted + (full?.accepted ?? 0) + (several?.accepted ?? 0);
    const records = measured.counts.reduce((sum, count) => sum + count.records, 0);
    const ids = measured.counts.reduce((sum, count) => sum + count.ids, 0);
    const filledRate = full === null ? null : median(full.rates);
    // Each as a share of express, for the two are not measured at the same moment.
    const gained = several === null ? null : medianRatio(several.rates, several.expressRates) / ratio;
    const kept = full === null ? null : medianRatio(full.rates, full.expressRates) / ratio;
    const targets: Target[] = [
      atLeast('share of express', ratio, 0.5),
      atLeast('share of express, until delivered', deliveredRatio, 0.5),
      {
        name: 'p99 at half the rate',
        wanted: '< 50 ms',
        measured: `${round(paced.p99, 1)} ms`,
        met: paced.p99 < 50,
      },
      {
        name: 'memory, last third against first',
        wanted: 'at most +10 %',
        measured: `${round(growth * 100, 1)} %`,
        met: growth <= 0.1,
      },
      {
        name: 'archive records',
        wanted: `${accepted}, each once`,
        measured: `${records} with ${ids} ids`,
        met: records === accepted && ids === accepted,
      },
    ];
    if (kept !== null)
      targets.push(atLeast(`rate with ${this.#options.filled} events in the journal`, kept, 0.9));
    return {
      figures: {
        express_per_second: round(express),
        accepted_per_second: round(rate),
        delivered_per_second: round(delivered),
        ratio: round(ratio, 3),
        delivered_ratio: round(deliveredRatio, 3),
        rounds: {
          express: fresh.expressRates.map((value) => round(value)),
          receiver: fresh.rates.map((value) => round(value)),
        },
        paced_per_second: round(half),
        p50_ms: round(paced.p50, 2),
        p99_ms: round(paced.p99, 2),
        max_ms: round(paced.max, 2),
        memory,
        accepted,
        archived: records,
        filled_events: this.#options.filled,
        filled_per_second: filledRate === null ? null : round(filledRate),
        filled_share: kept === null ? null : round(kept, 3),
        workers: this.#options.workers,
        workers_per_second: several === null ? null : round(median(several.rates)),
        workers_share: gained === null ? null : round(gained, 3),
      },
      rows: [
        ['bare express', `${round(express)}/s`],
        ['accepted (signed, journaled, fsynced)', `${round(rate)}/s`],
        ['the same until routed and delivered', `${round(delivered)}/s`],
        [
          'latency at half of that',
          `p50 ${round(paced.p50, 1)} ms, p99 ${round(paced.p99, 1)} ms, max ${round(paced.max, 1)} ms`,
        ],
        ['memory', `${memory.firstMiB} → ${memory.lastMiB} MiB, slope ${memory.slopeMiBPerMinute} MiB/min`],
        ...(several === null
          ? []
          : [
              [
                `accepted, ${this.#options.workers} workers`,
                `${round(median(several.rates))}/s, ${round(gained ?? 0, 2)} of one process`,
              ] as const,
            ]),
        ...(filledRate === null ? [] : [['accepted, filled journal', `${round(filledRate)}/s`] as const]),
      ],
      targets,
    };
  }

  #note(line: string): void {
    this.#context.note(line);
  }
}

function medianRatio(rates: readonly number[], expressRates: readonly number[]): number {
  return median(rates.map((rate, index) => rate / (expressRates[index] ?? Number.NaN)));
}

function perSecond(result: LoadResult, count: number): number {
  return (count * 1000) / result.elapsedMs;
}

function atLeast(name: string, measured: number, wanted: number): Target {
  return { name, wanted: `≥ ${wanted}`, measured: round(measured, 2).toFixed(2), met: measured >= wanted };
}
