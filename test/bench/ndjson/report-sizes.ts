import type { BenchResult, Target } from '../bench.ts';
import { median, round } from '../report.ts';
import type { Timed } from './timed.ts';

/** What is run on a document, in this order in every round. */
export type Run = 'millrace' | 'jq' | 'duckdb' | 'duckdb_1_thread';
export type Measured = Map<Run, readonly Timed[]>;

/** All that was measured with one document. */
export interface Size {
  readonly mb: number;
  readonly meals: number;
  readonly bytes: number;
  readonly runs: Measured;
}

const WANTED: Readonly<Partial<Record<Run, number>>> = { jq: 5, duckdb: 4, duckdb_1_thread: 4 };
const MOST_MB = 120;
const MB_PER_MIB = 1.048_576;

const TITLES: Readonly<Record<Run, string>> = {
  millrace: 'millrace ndjson --table meals --out: meals and their foods',
  jq: "jq -c '.meals[]'",
  duckdb: 'DuckDB, read_json and unnest into a table, a thread a core',
  duckdb_1_thread: 'the same with 1 thread',
};

export function reportOf(sizes: readonly Size[]): BenchResult {
  const summaries = sizes.map(({ mb, meals, bytes, runs }) => {
    const programs = [...runs].map(([name, all]) => ({ name, ...programOf(all, meals) }));
    const own = runs.get('millrace') ?? [];
    const ratios = [...runs].flatMap(([name, all]) =>
      name === 'millrace' ? [] : [{ name, ...ratioOf(own, all) }],
    );
    return { mb, meals, bytes, programs, ratios };
  });
  return {
    figures: { sizes: summaries },
    rows: summaries.flatMap(({ mb, programs, ratios }) => [
      ...programs.map(({ name, seconds, cpu_seconds: cpu, peak_mb: peak }) => {
        return [
          `${mb} MB: ${TITLES[name]}`,
          `${seconds} s, CPU ${cpu} s, peak ${peak ?? 'unknown'} MB`,
        ] as const;
      }),
      ...ratios.map(({ name, cpu, cpu_range: range }) => {
        return [`${mb} MB: processor time, as a multiple of ${name}`, `${cpu} (${range})`] as const;
      }),
    ]),
    targets: summaries.flatMap(({ mb, programs, ratios }) => [
      ...ratios.map(({ name, by_clock: ratio, by_clock_range: range }): Target => {
        const wanted = WANTED[name] ?? 0;
        return {
          name: `${mb} MB: meals and foods to files, as a multiple of ${name}`,
          wanted: `≥ ${wanted}`,
          measured: `${ratio} (${range})`,
          met: ratio >= wanted,
        };
      }),
      ...programs.flatMap(({ name, peak_mb: peak }): Target[] => {
        if (name !== 'millrace' || peak === null) return [];
        const target = { name: `${mb} MB: peak resident memory`, wanted: `< ${MOST_MB} MB` };
        return [{ ...target, measured: `${peak} MB`, met: peak < MOST_MB }];
      }),
    ]),
  };
}

function programOf(
  runs: readonly Timed[],
  meals: number,
): {
  meals_per_second: number;
  seconds: number;
  seconds_range: string;
  cpu_seconds: number;
  peak_mb: number | null;
} {
  const seconds = runs.map((run) => run.seconds);
  const peaks = runs.flatMap(({ peakMiB }) => (peakMiB === null ? [] : [peakMiB * MB_PER_MIB]));
  return {
    meals_per_second: round(meals / median(seconds)),
    seconds: round(median(seconds), 2),
    seconds_range: rangeOf(seconds),
    cpu_seconds: round(median(runs.map(cpuOf)), 2),
    peak_mb: peaks.length === 0 ? null : round(Math.max(...peaks)),
  };
}

/** Medians over the rounds, each compared with the run of its own round. */
function ratioOf(
  own: readonly Timed[],
  theirs: readonly Timed[],
): { by_clock: number; by_clock_range: string; cpu: number; cpu_range: string } {
  const ratios = (of: (run: Timed) => number): number[] =>
    theirs.map((run, at) => of(run) / of(own[at] ?? run));
  const [clock, cpu] = [ratios((run) => run.seconds), ratios(cpuOf)];
  return {
    by_clock: round(median(clock), 2),
    by_clock_range: rangeOf(clock),
    cpu: round(median(cpu), 2),
    cpu_range: rangeOf(cpu),
  };
}

const cpuOf = ({ cpuSeconds }: Timed): number => cpuSeconds ?? Number.NaN;

function rangeOf(values: readonly number[]): string {
  return `${round(Math.min(...values), 2)} to ${round(Math.max(...values), 2)}`;
}
