import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { MAIN } from '../../support/millrace.ts';
import { lacksProgram } from '../../support/requirements.ts';
import type { Bench, BenchContext, BenchResult, Target } from '../bench.ts';
import { median, round } from '../report.ts';
import { makeDocument } from './make-document.ts';
import { timed, type Timed } from './timed.ts';

const LARGE = 1_000_000_000;
const MOST_MIB = 200;
const LEAST_RATIO = 4;
const DUCKDB = join(import.meta.dirname, 'duckdb-child.ts');

type Command = readonly [string, ...string[]];

/** What is run on the document, in this order in every round. */
const RUNS = ['tables', 'meals', 'jq', 'duckdb'] as const;
type Run = (typeof RUNS)[number];

/** What one program came to, medians over the rounds. */
interface Outcome {
  readonly rowsPerSecond: number;
  readonly seconds: readonly number[];
  readonly cpuSeconds: readonly (number | null)[];
  readonly peakMiB: number | null;
}

/** `millrace ndjson` against jq and DuckDB on the same document in the same run, and its memory. */
export const ndjson: Bench = {
  summary: 'meals a second from a bulk document, as a multiple of jq and DuckDB; memory',
  help: `Flags:
  --mb N       size of the document, MB (250)
  --rounds N   rounds, each with every program once (3)
  --large      also a document of 1 GB, for the memory
  --folder DIR make the temporary folder here; needs about 5 times the document
`,
  run: async (argv, context) => {
    const { mb, rounds, large, folder } = parseOptions(argv);
    const place = await mkdtemp(join(folder, 'millrace-bench-'));
    try {
      const document = join(place, 'meals.json');
      const { meals, bytes } = await makeDocument(document, mb * 1e6, context.signal);
      context.note(`document: ${round(bytes / 1e6)} MB, ${meals} meals`);
      const lack = lacksProgram('jq');
      if (lack !== null) context.note(`jq: left out, ${lack}`);
      const names = RUNS.filter((name) => name !== 'jq' || lack === null);
      const runs = await inRounds(names, commandsOn(document, place), rounds, place, context);
      await expectMeals(join(place, 'tables', 'meals.ndjson'), meals);
      const outcomes = new Map([...runs].map(([name, all]) => [name, outcomeOf(all, meals)]));
      await rm(document);
      const peak = large ? await largePeak(place, context) : null;
      return report({ meals, bytes }, runs, outcomes, peak);
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  },
};

/** @throws TypeError for a flag that is not known or not a number */
function parseOptions(argv: readonly string[]): {
  mb: number;
  rounds: number;
  large: boolean;
  folder: string;
} {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      mb: { type: 'string', default: '250' },
      rounds: { type: 'string', default: '3' },
      large: { type: 'boolean', default: false },
      folder: { type: 'string', default: tmpdir() },
    },
  });
  const [mb, rounds] = [Number(values.mb), Number(values.rounds)];
  for (const value of [mb, rounds])
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError('numbers must be whole and above 0');
  return { mb, rounds, large: values.large, folder: values.folder };
}

function commandsOn(document: string, place: string): Readonly<Record<Run, Command>> {
  const millrace = [process.execPath, MAIN, 'ndjson', document, '--table', 'meals'] as const;
  return {
    tables: [...millrace, '--out', join(place, 'tables')],
    meals: millrace,
    jq: ['jq', '-c', '.meals[]', document],
    duckdb: [process.execPath, DUCKDB, document],
  };
}

/** Programs take turns, so that what else the machine does meets them all. The document is in the page cache. */
async function inRounds(
  names: readonly Run[],
  commands: Readonly<Record<Run, Command>>,
  rounds: number,
  place: string,
  { note, signal }: BenchContext,
): Promise<Map<Run, Timed[]>> {
  const runs = new Map<Run, Timed[]>(names.map((name) => [name, []]));
  for (let at = 1; at <= rounds; at += 1) {
    for (const [name, all] of runs) all.push(await timed(commands[name], join(place, 'output'), signal));
    const last = [...runs].map(([name, all]) => `${name} ${round(all.at(-1)?.seconds ?? 0, 2)} s`);
    note(`round ${at}: ${last.join(', ')}`);
  }
  return runs;
}

function outcomeOf(runs: readonly Timed[], meals: number): Outcome {
  const seconds = runs.map((run) => round(run.seconds, 2));
  const peaks = runs.flatMap(({ peakMiB }) => (peakMiB === null ? [] : [peakMiB]));
  return {
    rowsPerSecond: round(meals / median(seconds)),
    seconds,
    cpuSeconds: runs.map((run) => run.cpuSeconds),
    peakMiB: peaks.length === 0 ? null : round(Math.max(...peaks)),
  };
}

/** A bench of a program that lost rows would measure nothing. */
async function expectMeals(file: string, wanted: number): Promise<void> {
  let lines = 0;
  for await (const rows of createReadStream(file) as AsyncIterable<Buffer>)
    for (let at = rows.indexOf(10); at !== -1; at = rows.indexOf(10, at + 1)) lines += 1;
  if (lines !== wanted) throw new Error(`${lines} rows came of ${wanted} meals`);
}

/** @returns MiB; null where the system does not say */
async function largePeak(place: string, { note, signal }: BenchContext): Promise<number | null> {
  const document = join(place, 'large.json');
  const { meals, bytes } = await makeDocument(document, LARGE, signal);
  const command = commandsOn(document, join(place, 'large')).tables;
  const { seconds, peakMiB } = await timed(command, join(place, 'output'), signal);
  note(`large: ${round(bytes / 1e6)} MB, ${meals} meals in ${round(seconds, 2)} s`);
  return peakMiB === null ? null : round(peakMiB);
}

/** Median over the rounds, each compared with the run of its own round. */
function ratio(
  runs: ReadonlyMap<Run, readonly Timed[]>,
  of: Run,
  to: Run,
  what: 'seconds' | 'cpuSeconds' = 'seconds',
): number {
  const theirs = runs.get(to) ?? [];
  const ratios = (runs.get(of) ?? []).map(
    (own, at) => (theirs[at]?.[what] ?? Number.NaN) / (own[what] ?? Number.NaN),
  );
  return round(median(ratios), 2);
}

const TITLES: Readonly<Record<Run, string>> = {
  tables: 'millrace ndjson --table meals --out: meals and their foods',
  meals: 'millrace ndjson --table meals: meals to stdout',
  jq: "jq -c '.meals[]'",
  duckdb: 'DuckDB, read_json and unnest into a table',
};

function report(
  { meals, bytes }: { meals: number; bytes: number },
  runs: ReadonlyMap<Run, readonly Timed[]>,
  outcomes: ReadonlyMap<Run, Outcome>,
  largePeakMiB: number | null,
): BenchResult {
  const ratios = (['jq', 'duckdb'] as const)
    .filter((other) => runs.has(other))
    .map((other) => {
      return {
        other,
        tables: ratio(runs, 'tables', other),
        meals: ratio(runs, 'meals', other),
        cpu: ratio(runs, 'tables', other, 'cpuSeconds'),
      };
    });
  const peaks = [
    { name: `${round(bytes / 1e6)} MB`, mib: outcomes.get('tables')?.peakMiB ?? null },
    { name: '1 GB', mib: largePeakMiB },
  ];
  const targets: Target[] = [
    ...ratios.map(({ other, tables }) => ({
      name: `meals and foods, as a multiple of ${other}`,
      wanted: `≥ ${LEAST_RATIO}`,
      measured: String(tables),
      met: tables >= LEAST_RATIO,
    })),
    ...peaks.flatMap(({ name, mib }) =>
      mib === null
        ? []
        : [
            {
              name: `peak resident memory, ${name}`,
              wanted: `< ${MOST_MIB} MiB`,
              measured: `${mib} MiB`,
              met: mib < MOST_MIB,
            },
          ],
    ),
  ];
  return {
    figures: { meals, bytes, programs: Object.fromEntries(outcomes), ratios, large_peak_mib: largePeakMiB },
    rows: [
      ...[...outcomes].map(([name, { rowsPerSecond, peakMiB }]) => {
        return [TITLES[name], `${rowsPerSecond} meals/s, peak ${peakMiB ?? 'unknown'} MiB`] as const;
      }),
      ...ratios.flatMap(({ other, meals: alone, cpu }) => [
        [`meals to stdout, as a multiple of ${other}`, String(alone)] as const,
        [`meals and foods, by processor time, as a multiple of ${other}`, String(cpu)] as const,
      ]),
    ],
    targets,
  };
}
