import { DuckDBInstance } from '@duckdb/node-api';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeArchive, mealEvents } from '../archives.ts';
import { bench, type BenchContext, FOLDER, MAIN_FLAG, ROUNDS } from '../bench.ts';
import { type Figure, round } from '../figures.ts';
import { figuresOfRuns, multiplesOf, programOf, tellTime, type Timed, timed } from '../processes.ts';
import { inTurns } from '../rounds.ts';

const DUCKDB = join(import.meta.dirname, 'duckdb-child.ts');

/** What is exported: the events as they are, and typed rows with those nested in them. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  events: ['events'],
  meals: ['meals', 'meal_items'],
};
/** How both sides compress. */
const CODECS = ['gzip', 'zstd'];

/** `millrace export` against DuckDB, which reads the same archive and writes the same rows. */
export const exportRows = bench(
  'events a second from an archive to Parquet, as a multiple of DuckDB; memory',
  {
    events: [200_000, 'events in the archive, 2 KB each'],
    files: [8, 'gzip files that hold them'],
    rounds: ROUNDS,
    compress: [CODECS, 'compression of the Parquet files on both sides; may be repeated', CODECS],
    table: [Object.keys(TABLES), 'may be repeated', Object.keys(TABLES)],
    main: MAIN_FLAG,
    folder: FOLDER,
  },
  async ({ events, files, rounds, compress, table: tables, main }, context) => {
    const archive = join(context.folder, 'archive');
    const bytes = await makeArchive(archive, { events, files }, mealEvents(), context.signal);
    context.note(`archive: ${events} events, ${round(bytes / 1e6)} MB before compression`);
    const program = await programOf(main, context);
    const figures: Figure[] = [];
    for (const table of tables)
      for (const codec of compress) {
        context.note(`${table}, ${codec}`);
        const runs = await measured(program, archive, table, codec, rounds, context);
        figures.push(...figuresOf(`${table}, ${codec}`, events, runs));
      }
    return figures;
  },
);

/** By who has run; the archive is in the page cache. */
type Runs = Readonly<Record<'millrace' | 'DuckDB, 1 thread' | 'DuckDB, a thread a core', readonly Timed[]>>;

function measured(
  program: string,
  archive: string,
  table: string,
  codec: string,
  rounds: number,
  context: BenchContext,
): Promise<Runs> {
  const { folder, signal } = context;
  const out = join(folder, 'out');
  let wanted: string | null = null;
  const run = async (...args: readonly string[]): Promise<Timed> => {
    const took = await timed([process.execPath, ...args], join(folder, 'output'), signal);
    const rows = await contentsOf(out, table);
    if (rows !== (wanted ??= rows)) throw new Error(`${args[0]} wrote other rows: ${rows}, not ${wanted}`);
    await rm(out, { recursive: true });
    return took;
  };
  const duckdb = async (threads: string): Promise<Timed> => {
    await mkdir(out);
    return run(DUCKDB, archive, out, table, codec, threads);
  };
  const flags = ['--table', table, '--compress', codec, '--partition', 'none'];
  return inTurns(
    {
      millrace: () => run(program, 'export', archive, '--out', out, ...flags),
      'DuckDB, 1 thread': () => duckdb('1'),
      'DuckDB, a thread a core': () => duckdb(''),
    },
    { rounds, tell: tellTime },
    context,
  );
}

/** Rows of each file and a sum over them: a bench of a program that lost some would measure nothing. */
async function contentsOf(out: string, table: string): Promise<string> {
  const db = await (await DuckDBInstance.create()).connect();
  const said: unknown[] = [];
  for (const name of TABLES[table] ?? []) {
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

function figuresOf(what: string, events: number, { millrace, ...others }: Runs): Figure[] {
  return [
    {
      name: `${what}: millrace export`,
      values: millrace.map(({ seconds }) => events / seconds),
      unit: ' events/s',
      digits: 0,
    },
    ...figuresOfRuns(`${what}: millrace`, millrace, '< 500'),
    ...Object.entries(others).flatMap(([name, runs]) => [
      ...figuresOfRuns(`${what}: ${name}`, runs),
      ...multiplesOf(`${what}: events a second, as a multiple of ${name}`, millrace, runs, '≥ 1'),
    ]),
  ];
}
