import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, BenchContext, BenchResult, Target } from '../bench.ts';
import { Load, ReceiverProcess } from '../ingest/children.ts';
import { newSecret } from '../ingest/requests.ts';
import { median, round } from '../report.ts';
import { HELP, parseOptions, type ConsoleOptions } from './options.ts';
import { Watchers } from './watcher.ts';

/** The receiver with somebody watching, against itself without. */
export const consoleCost: Bench = {
  summary: 'what an open console and a Prometheus cost a receiver under load, and how soon they are answered',
  help: HELP,
  run: async (argv, context) => {
    const options = parseOptions(argv);
    const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    process.once('exit', remove);
    const secret = newSecret();
    const receiver = await ReceiverProcess.start({ folder, secret, profile: null });
    const load = new Load();
    try {
      const parts = { options, context, receiver, load, secret };
      // Until caches are full and code is compiled.
      await flood({ ...parts, options: { ...options, rounds: 2 } }, 'warm-up');
      return report(options, await steady(parts), await flood(parts, 'round'));
    } finally {
      await load.stop();
      await receiver.kill();
      process.off('exit', remove);
      remove();
    }
  },
};

interface Parts {
  readonly options: ConsoleOptions;
  readonly context: BenchContext;
  readonly receiver: ReceiverProcess;
  readonly load: Load;
  readonly secret: string;
}

/** One figure of two stretches, one right after the other, so that both have seen the same machine. */
interface Pair {
  readonly alone: number;
  readonly watched: number;
}

interface Steady {
  /** Milliseconds of CPU a second. */
  readonly cpu: readonly Pair[];
  /** Of the deliveries, milliseconds. */
  readonly p99: number;
  /** Of who watched, milliseconds. */
  readonly answers: readonly number[];
}

/** Seconds that are watched, or not, at a time: short, for what else the machine does changes too. */
const WINDOW = 2;

/** One long load at an even rate, watched every other while. */
async function steady({ options, context, receiver, load, secret }: Parts): Promise<Steady> {
  const { rate, seconds, connections, watchers } = options;
  await load.make(rate * (seconds + 2 * WINDOW), secret);
  const running = load.run({ op: 'pace', port: receiver.port, connections, rate });
  // Asked for at the end; until then it must not end the process.
  running.catch(() => undefined);
  const cpu: Pair[] = [];
  const answers: number[] = [];
  await wait(WINDOW * 1000);
  for (let at = 0; at < seconds / (2 * WINDOW); at += 1) {
    context.signal.throwIfAborted();
    const watchedFirst = at % 2 === 0;
    const first = await window(receiver, watchedFirst ? watchers : 0, answers);
    const second = await window(receiver, watchedFirst ? 0 : watchers, answers);
    cpu.push(watchedFirst ? { watched: first, alone: second } : { alone: first, watched: second });
  }
  const { p99 } = await running;
  await receiver.untilDelivered();
  context.note(`at ${rate}/s: ${describe(cpu, 'ms of CPU a second')}`);
  return { cpu, p99, answers };
}

/** @returns milliseconds of CPU a second */
async function window(receiver: ReceiverProcess, count: number, answers: number[]): Promise<number> {
  const watchers = new Watchers(receiver, count);
  const started = performance.now();
  const before = receiver.cpuSeconds();
  await wait(WINDOW * 1000);
  const cpu = (receiver.cpuSeconds() - before) * 1000;
  const took = (performance.now() - started) / 1000;
  answers.push(...(await watchers.stop()));
  return cpu / took;
}

/** Pairs of stretches as fast as it goes. @returns answers a second */
async function flood(parts: Parts, name: string): Promise<readonly Pair[]> {
  const pairs: Pair[] = [];
  for (let at = 1; at <= parts.options.rounds; at += 1) {
    parts.context.signal.throwIfAborted();
    const watchedFirst = at % 2 === 0;
    const first = await stretch(parts, watchedFirst);
    const second = await stretch(parts, !watchedFirst);
    pairs.push(watchedFirst ? { watched: first, alone: second } : { alone: first, watched: second });
    parts.context.note(`${name} ${at}: ${describe(pairs.slice(-1), 'answers a second')}`);
  }
  return pairs;
}

async function stretch({ load, receiver, secret, options }: Parts, isWatched: boolean): Promise<number> {
  const { connections, perRound, watchers: count } = options;
  await load.make(perRound, secret);
  const watchers = new Watchers(receiver, isWatched ? count : 0);
  const { elapsedMs } = await load.run({ op: 'flood', port: receiver.port, connections });
  await watchers.stop();
  await receiver.untilDelivered();
  return (perRound * 1000) / elapsedMs;
}

function report(options: ConsoleOptions, { cpu, p99, answers }: Steady, rates: readonly Pair[]): BenchResult {
  const { watchers } = options;
  const added = median(cpu.map(({ alone, watched }) => watched / alone - 1)) / watchers;
  const lost = median(rates.map(({ alone, watched }) => 1 - watched / alone)) / watchers;
  const sorted = answers.toSorted((a, b) => a - b);
  const slowest = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN;
  const targets: Target[] = [
    below(
      'CPU that one console and one Prometheus add at the steady rate',
      percent(added),
      '5 %',
      added < 0.05,
    ),
    below('rate lost to the two as fast as it goes', percent(lost), '5 %', lost < 0.05),
    below('p99 of deliveries at the steady rate', `${round(p99, 1)} ms`, '50 ms', p99 < 50),
    below('p99 of answers to who watches', `${round(slowest, 1)} ms`, '250 ms', slowest < 250),
  ];
  return {
    figures: {
      watchers,
      eventsPerSecond: options.rate,
      cpuMsPerSecond: mediansOf(cpu),
      cpuAdded: round(added, 4),
      floodPerSecond: mediansOf(rates),
      rateLost: round(lost, 4),
      deliveryP99Ms: round(p99, 1),
      answers: answers.length,
      answerP50Ms: round(median(answers), 1),
      answerP99Ms: round(slowest, 1),
    },
    rows: [
      [`at ${options.rate}/s`, describe(cpu, 'ms of CPU a second')],
      ['as fast as it goes', describe(rates, 'answers a second')],
      ['answers to who watches', `${answers.length}, median ${round(median(answers), 1)} ms`],
    ],
    targets,
  };
}

function mediansOf(pairs: readonly Pair[]): Pair {
  return {
    alone: round(median(pairs.map(({ alone }) => alone)), 1),
    watched: round(median(pairs.map(({ watched }) => watched)), 1),
  };
}

function describe(pairs: readonly Pair[], unit: string): string {
  const { alone, watched } = mediansOf(pairs);
  return `${alone} alone, ${watched} watched (${unit})`;
}

function below(name: string, measured: string, limit: string, met: boolean): Target {
  return { name, wanted: `< ${limit}`, measured, met };
}

function percent(share: number): string {
  return `${round(share * 100, 1)} %`;
}
