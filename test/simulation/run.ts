import { runJobs } from '../support/jobs.ts';
import type { Order, Report } from './job.ts';

interface RunOptions {
  /** Of the first history; the others count on from it. */
  readonly seed: number;
  /** These come first. */
  readonly first: readonly number[];
  readonly histories: number;
  readonly minutes: number;
  readonly jobs: number;
  /** Steps of the operator; left out: as each seed has it. */
  readonly length?: number | undefined;
  /** The program has a known defect: the first seed that shows it is enough. */
  readonly isDefect: boolean;
}

interface Totals {
  histories: number;
  events: number;
  /** What was done to the receiver, and how often. */
  readonly tried: Record<string, number>;
  /** Seeds. */
  readonly failed: number[];
  /** Seeds whose process ended, instead of telling how their history did. */
  readonly died: number[];
  readonly seed: number;
  seconds: number;
}

/** Milliseconds between two notes of how far it is. */
const EVERY = 60_000;

/** Histories in several processes. */
export async function simulate(options: RunOptions): Promise<Totals> {
  const { seed, first, histories, minutes, jobs, length, isDefect } = options;
  const started = performance.now();
  const totals: Totals = { histories: 0, events: 0, tried: {}, failed: [], died: [], seed, seconds: 0 };
  const counted = (): Totals => {
    totals.seconds = Math.round(performance.now() - started) / 1000;
    return totals;
  };
  let given = 0;
  const progress = setInterval(() => process.stderr.write(`${JSON.stringify(counted())}\n`), EVERY);
  await runJobs<Order, Report>({
    job: new URL('job.ts', import.meta.url),
    jobs: Math.max(1, Math.min(jobs, histories)),
    minutes,
    next: () => {
      if (given >= histories) return null;
      const next = first[given] ?? seed + given - first.length;
      given += 1;
      return { seed: next, length, shrinks: !isDefect };
    },
    heard: ({ seed: own, events, tried, text }) => {
      totals.histories += 1;
      totals.events += events;
      for (const [what, times] of Object.entries(tried))
        totals.tried[what] = (totals.tried[what] ?? 0) + times;
      if (text === '') return false;
      totals.failed.push(own);
      process.stdout.write(text);
      return isDefect;
    },
    died: ({ seed: own }, code) => {
      totals.histories += 1;
      totals.failed.push(own);
      totals.died.push(own);
      process.stdout.write(`seed ${own}: its process ended with ${code}\n`);
    },
  });
  clearInterval(progress);
  return counted();
}
