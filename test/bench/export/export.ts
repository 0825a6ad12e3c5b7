import { DuckDBInstance } from '@duckdb/node-api';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import buildMain from '../../support/build.ts';
import type { Bench, BenchContext, BenchResult, Target } from '../bench.ts';
import { timed, type Timed } from '../ndjson/timed.ts';
import { median, round } from '../report.ts';
import { makeArchive } from './make-archive.ts';

const MOST_MIB = 500;
const LEAST_RATIO = 1;
const DUCKDB = join(import.meta.dirname, 'duckdb-child.ts');

/** What is exported: the events as they are, and typed rows with those nested in them. */
const TABLES = { events: ['events'], meals: ['meals', 'meal_items'] } as const;
type Table = keyof typeof TABLES;

/** How both sides compress. */
const CODECS = ['gzip', 'zstd'] as const;
type Codec = (typeof CODECS)[number];

/** In this order in every round. */
const RUNS = ['millrace', 'duckdb-1', 'duckdb'] as const;
type Run = (typeof RUNS)[number];

interface Options {
  readonly events: number;
  readonly files: number;
  readonly rounds: number;
  readonly codecs: readonly Codec[];
  readonly tables: readonly Table[];
  readonly folder: string;
  /** Another tree's program; empty for this one's. */
  readonly main: string;
}

/** `millrace export` against DuckDB, which reads the same archive and writes the same rows. */
export const exportRows: Bench = {
  summary: 'events a second from an archive to Parquet, as a multiple of DuckDB; memory',
  help: `Flags:
  --events N      events in the archive (200000)
  --files N       gzip files that hold them (8)
  --rounds N      rounds, each with every program once (5)
  --compress HOW  compression of the Parquet files on both sides, gzip or zstd; may be repeated (both)
  --table NAME    events or meals; may be repeated (both)
  --main FILE     measure another program: a main.js or a src/main.ts
  --folder DIR    make the temporary folder here; needs about 2 KB for each event
`,
  run: async (argv, context) => {
    const options = parseOptions(argv);
    const place = await mkdtemp(join(options.folder, 'millrace-bench-'));
    const removeBuilt = options.main === '' ? await buildMain() : () => undefined;
    try {
      const archive = join(place, 'archive');
      const bytes = await makeArchive(archive, options, context.signal);
      context.note(`archive: ${options.events} events, ${round(bytes / 1e6)} MB before compression`);
      const measured: Measured[] = [];
      for (const table of options.tables)
        for (const codec of options.codecs) {
          const runs = await inRounds(table, codec, archive, place, options, context);
          measured.push({ table, codec, runs });
        }
      return report(options, bytes, measured);
    } finally {
      removeBuilt();
      await rm(place, { recursive: true, force: true });
    }
  },
};

/** @throws TypeError for a flag that is not known or has a value that it does not take */
function parseOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      events: { type: 'string', default: '200000' },
      files: { type: 'string', default: '8' },
      rounds: { type: 'string', default: '5' },
      compress: { type: 'string', multiple: true, default: [...CODECS] },
      table: { type: 'string', multiple: true, default: Object.keys(TABLES) },
      main: { type: 'string', default: '' },
      folder: { type: 'string', default: tmpdir() },
    },
  });
  const [events, files, rounds] = [Number(values.events), Number(values.files), Number(values.rounds)];
  for (const value of [events, files, rounds])
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError('numbers must be whole and above 0');
  const { main, folder } = values;
  const codecs = values.compress.map((name) => {
    if (name !== 'gzip' && name !== 'zstd') throw new TypeError('--compress is gzip or zstd');
    return name;
  });
  const tables = values.table.map((name) => {
    if (name !== 'events' && name !== 'meals') throw new TypeError('--table is events or meals');
    return name;
  });
  return { events, files, rounds, codecs, tables, folder, main };
}

/** Programs take turns, so that what else the machine does meets them all. The archive is in the page cache. */
async function inRounds(
  table: Table,
  codec: Codec,
  archive: string,
  place: string,
  { rounds, main: other }: Options,
  { note, signal }: BenchContext,
): Promise<Map<Run, Timed[]>> {
  const runs = new Map<Run, Timed[]>(RUNS.map((run) => [run, []]));
  const main = other === '' ? (process.env['MILLRACE_TEST_MAIN'] ?? '') : other;
  let wanted: string | null = null;
  for (let at = 1; at <= rounds; at += 1) {
    for (const [run, all] of runs) {
      const out = join(place, 'out');
      if (run !== 'millrace') await mkdir(out);
      const flags = ['--table', table, '--compress', codec, '--partition', 'none'];
      const command =
        run === 'millrace'
          ? ([process.execPath, main, 'export', archive, '--out', out, ...flags] as const)
          : ([process.execPath, DUCKDB, archive, out, table, codec, run === 'duckdb' ? '' : '1'] as const);
      all.push(await timed(command, join(place, 'output'), signal));
      const rows = await contentsOf(out, table);
      if (rows !== (wanted ??= rows)) throw new Error(`${run} wrote other rows: ${rows}, not ${wanted}`);
      await rm(out, { recursive: true });
    }
    const last = [...runs].map(([run, all]) => `${run} ${round(all.at(-1)?.seconds ?? 0, 2)} s`);
    note(`${table}, ${codec}, round ${at}: ${last.join(', ')}`);
  }
  return runs;
}

/** Rows of each file and a sum over them: a bench of a program that lost some would measure nothing. */
async function contentsOf(out: string, table: Table): Promise<string> {
  const db = await (await DuckDBInstance.create()).connect();
  const said: unknown[] = [];
  for (const name of TABLES[table]) {
    const sum =
      name === 'events' ? 'sum(length(event::VARCHAR))' : 'round(sum(CAST(energy_value AS DOUBLE)), 2)';
    const query = `SELECT count(*), ${sum} FROM read_parquet('${join(out, name)}*/**/*.parquet')`;
    const flat = `SELECT count(*), ${sum} FROM read_parquet('${join(out, name)}.parquet')`;
    const result = await db.runAndReadAll(query).catch(() => db.runAndReadAll(flat));
    said.push(...result.getRowsJson());
  }
  db.closeSync();
  return JSON.stringify(said);
}

interface Outcome {
  readonly run: Run;
  readonly eventsPerSecond: number;
  readonly seconds: readonly number[];
  readonly cpuSeconds: readonly (number | null)[];
  readonly peakMiB: number | null;
}

function outcomeOf(run: Run, all: readonly Timed[], events: number): Outcome {
  const seconds = all.map((one) => round(one.seconds, 2));
  const peaks = all.flatMap(({ peakMiB }) => (peakMiB === null ? [] : [peakMiB]));
  return {
    run,
    eventsPerSecond: round(events / median(seconds)),
    seconds,
    cpuSeconds: all.map((one) => one.cpuSeconds),
    peakMiB: peaks.length === 0 ? null : round(Math.max(...peaks)),
  };
}

/** Each round compared with itself: the median, and the least and the greatest. */
function ratios(
  runs: ReadonlyMap<Run, readonly Timed[]>,
  to: Run,
  what: 'seconds' | 'cpuSeconds',
): { median: number; range: string } {
  const theirs = runs.get(to) ?? [];
  const all = (runs.get('millrace') ?? []).map(
    (own, at) => (theirs[at]?.[what] ?? Number.NaN) / (own[what] ?? Number.NaN),
  );
  return {
    median: round(median(all), 2),
    range: `${round(Math.min(...all), 2)} to ${round(Math.max(...all), 2)}`,
  };
}

interface Measured {
  readonly table: Table;
  readonly codec: Codec;
  readonly runs: ReadonlyMap<Run, readonly Timed[]>;
}

function report({ events, files }: Options, bytes: number, measured: readonly Measured[]): BenchResult {
  const rows: [string, string][] = [];
  const targets: Target[] = [];
  const figures: Record<string, unknown> = {};
  const threads = { 'duckdb-1': '1 thread', duckdb: `${availableParallelism()} threads` };
  for (const { table, codec, runs: of } of measured) {
    const what = `${table}, ${codec}`;
    const outcomes = [...of].map(([run, all]) => outcomeOf(run, all, events));
    for (const { run, eventsPerSecond, seconds, peakMiB } of outcomes) {
      const name = run === 'millrace' ? 'millrace export' : `DuckDB, ${threads[run]}`;
      const range = `${Math.min(...seconds)} to ${Math.max(...seconds)} s`;
      rows.push([
        `${what}: ${name}`,
        `${eventsPerSecond} events/s, ${range}, peak ${peakMiB ?? 'unknown'} MiB`,
      ]);
    }
    const compared = (['duckdb-1', 'duckdb'] as const).map((to) => {
      const [clock, cpu] = [ratios(of, to, 'seconds'), ratios(of, to, 'cpuSeconds')];
      rows.push([
        `${what}: by processor time, as a multiple of DuckDB, ${threads[to]}`,
        `${cpu.median}, ${cpu.range}`,
      ]);
      targets.push({
        name: `${what}: events a second, as a multiple of DuckDB, ${threads[to]}`,
        wanted: `≥ ${LEAST_RATIO}`,
        measured: `${clock.median}, ${clock.range}`,
        met: clock.median >= LEAST_RATIO,
      });
      return { to, ratio: clock, cpu_ratio: cpu };
    });
    const peak = outcomes.find(({ run }) => run === 'millrace')?.peakMiB ?? null;
    if (peak !== null)
      targets.push({
        name: `${what}: peak resident memory`,
        wanted: `< ${MOST_MIB} MiB`,
        measured: `${peak} MiB`,
        met: peak < MOST_MIB,
      });
    figures[what] = { programs: outcomes, compared };
  }
  return { figures: { events, files, bytes, tables: figures }, rows, targets };
}
