import { mkdtemp, rm } from 'node:fs/promises';
import { statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { writeArchive } from '../../replay/made-up-archive.ts';
import { lacksPostgres, Postgres } from '../../support/postgres.ts';
import type { Bench, BenchContext, BenchResult } from '../bench.ts';
import { median, round } from '../report.ts';
import { watched, type Memory } from './watched.ts';

const FILES = 20;
const LEAST_RATIO = 0.5;
const MOST_GROWTH = 1.1;
const TABLES = ['events', 'meals', 'meal_items'];

/** Rows a second of `millrace load` into PostgreSQL, against `COPY` of ready CSV of the same rows. */
export const load: Bench = {
  summary: 'rows a second from an archive into PostgreSQL, beside COPY of ready CSV',
  help: `  --events N   events of the archive (default 400000)
  --rounds N   rounds of both, one after the other (default 5)
`,
  async run(argv, context) {
    const { values } = parseArgs({
      args: [...argv],
      options: { events: { type: 'string', default: '400000' }, rounds: { type: 'string', default: '5' } },
    });
    const lack = lacksPostgres();
    if (lack !== null) throw new Error(lack);
    const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
    const server = Postgres.start();
    try {
      return await measure(folder, server, Number(values.events), Number(values.rounds), context);
    } finally {
      server.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** Seconds of both, and the memory of ours. */
interface Round {
  readonly load: number;
  readonly copy: number;
  readonly memory: Memory;
}

async function measure(
  folder: string,
  server: Postgres,
  events: number,
  rounds: number,
  { note, signal }: BenchContext,
): Promise<BenchResult> {
  const archive = join(folder, 'archive');
  note(`writing ${events} events`);
  writeArchive(archive, { files: FILES, each: Math.ceil(events / FILES), only: 'ndjson.gz' });
  const run = (schema: string): Promise<{ seconds: number; memory: Memory }> =>
    watched(
      [
        'load',
        archive,
        '--to',
        server.url,
        '--schema',
        schema,
        ...TABLES.flatMap((name) => ['--table', name]),
      ],
      signal,
    );
  // Once before the clock starts: it makes the rows that are to be had as CSV.
  await run('ready');
  const csv = (table: string): string => join(folder, `${table}.csv`);
  for (const table of TABLES) server.sql(`\\copy ready.${table} TO '${csv(table)}' WITH (FORMAT csv)`);
  const counts = countsIn(server, 'ready');
  const rows = counts.reduce((sum, count) => sum + count, 0);
  const bytes = TABLES.reduce((sum, table) => sum + statSync(csv(table)).size, 0);
  note(`${rows} rows, ${round(bytes / 1e6)} MB as CSV`);
  const all: Round[] = [];
  for (let turn = 1; turn <= rounds; turn += 1) {
    server.sql(
      'DROP SCHEMA IF EXISTS loaded CASCADE; DROP SCHEMA IF EXISTS copied CASCADE; CREATE SCHEMA copied',
    );
    // The same tables with the same indexes.
    for (const table of TABLES)
      server.sql(`CREATE TABLE copied.${table} (LIKE ready.${table} INCLUDING ALL)`);
    server.sql('CHECKPOINT');
    const { seconds, memory } = await run('loaded');
    server.sql('CHECKPOINT');
    const started = performance.now();
    server.sql(
      TABLES.map((table) => `\\copy copied.${table} FROM '${csv(table)}' WITH (FORMAT csv)`).join('\n'),
    );
    const copy = (performance.now() - started) / 1000;
    for (const schema of ['loaded', 'copied'])
      if (countsIn(server, schema).join() !== counts.join())
        throw new Error(`${schema}: not all rows are there`);
    all.push({ load: seconds, copy, memory });
    note(
      `round ${turn}: load ${seconds.toFixed(2)} s, COPY ${copy.toFixed(2)} s, ${memory.lastMiB} MiB at the end`,
    );
  }
  return report({ events, rows, bytes }, all);
}

function countsIn(server: Postgres, schema: string): number[] {
  return TABLES.map((table) => Number(server.sql(`SELECT count(*) FROM ${schema}.${table}`)));
}

function report(sizes: { events: number; rows: number; bytes: number }, all: readonly Round[]): BenchResult {
  const ratios = all.map(({ load: ours, copy }) => copy / ours);
  const growths = all.map(({ memory }) => memory.lastMiB / memory.firstMiB);
  const perSecond = (seconds: readonly number[]): number => round(sizes.rows / median(seconds));
  const ours = perSecond(all.map((each) => each.load));
  const copy = perSecond(all.map((each) => each.copy));
  const ratio = round(median(ratios), 2);
  const growth = round(median(growths), 2);
  const range = `${round(Math.min(...ratios), 2)} to ${round(Math.max(...ratios), 2)}`;
  const peak = Math.max(...all.map(({ memory }) => memory.maxMiB));
  return {
    figures: {
      ...sizes,
      load_rows_per_second: ours,
      copy_rows_per_second: copy,
      ratio,
      range,
      growth,
      peak_mib: peak,
    },
    rows: [
      ['millrace load, from the archive', `${ours} rows/s`],
      ['COPY of ready CSV', `${copy} rows/s`],
      ['share, from round to round', range],
      ['peak resident memory', `${peak} MiB`],
    ],
    targets: [
      {
        name: 'rows a second, as a share of COPY',
        wanted: `≥ ${LEAST_RATIO}`,
        measured: String(ratio),
        met: ratio >= LEAST_RATIO,
      },
      {
        name: 'resident memory, last third against first',
        wanted: `≤ ${MOST_GROWTH}`,
        measured: String(growth),
        met: growth <= MOST_GROWTH,
      },
    ],
  };
}
