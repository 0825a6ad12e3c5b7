import { statSync } from 'node:fs';
import { join } from 'node:path';
import { writeArchive } from '../replay/made-up-archive.ts';
import { MAIN } from '../support/millrace.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { bench, ROUNDS } from './bench.ts';
import { round, thirdsOf } from './figures.ts';
import { tellTime, type Timed, timed } from './processes.ts';
import { inTurns, ratios } from './rounds.ts';

const FILES = 20;
const TABLES = ['events', 'meals', 'meal_items'];
/** Share of a run in which its buffers and its heap find their size. */
const WARM_UP = 0.25;

/** Rows a second of `millrace load` into PostgreSQL, against `COPY` of ready CSV of the same rows. */
export const load = bench(
  'rows a second from an archive into PostgreSQL, beside COPY of ready CSV',
  { events: [400_000, 'events of the archive'], rounds: ROUNDS },
  async ({ events, rounds }, context) => {
    const lack = lacksPostgres();
    if (lack !== null) throw new Error(lack);
    const { folder, note, signal } = context;
    const server = Postgres.start();
    context.atEnd(() => server.stop());
    const archive = join(folder, 'archive');
    note(`writing ${events} events`);
    writeArchive(archive, { files: FILES, each: Math.ceil(events / FILES), only: 'ndjson.gz' });
    const flags = TABLES.flatMap((name) => ['--table', name]);
    const loaded = (schema: string): Promise<Timed> => {
      const command = ['load', archive, '--to', server.url, '--schema', schema, ...flags];
      return timed([process.execPath, MAIN, ...command], join(folder, 'output'), signal);
    };
    const countsIn = (schema: string): number[] =>
      TABLES.map((table) => Number(server.sql(`SELECT count(*) FROM ${schema}.${table}`)));
    // Once before the clock starts: it makes the rows that are to be had as CSV.
    await loaded('ready');
    const csv = (table: string): string => join(folder, `${table}.csv`);
    for (const table of TABLES) server.sql(`\\copy ready.${table} TO '${csv(table)}' WITH (FORMAT csv)`);
    const counts = countsIn('ready');
    const rows = counts.reduce((sum, count) => sum + count, 0);
    const bytes = TABLES.reduce((sum, table) => sum + statSync(csv(table)).size, 0);
    note(`${rows} rows, ${round(bytes / 1e6)} MB as CSV`);

    const copied = TABLES.map((table) => `\\copy copied.${table} FROM '${csv(table)}' WITH (FORMAT csv)`);
    const copy = async (): Promise<Timed> => {
      const started = performance.now();
      server.sql(copied.join('\n'));
      const seconds = (performance.now() - started) / 1000;
      return { seconds, cpuSeconds: Number.NaN, peakMiB: Number.NaN, samples: [] };
    };
    const checked = (schema: string, run: () => Promise<Timed>) => async (): Promise<Timed> => {
      server.sql('CHECKPOINT');
      const done = await run();
      if (countsIn(schema).join() !== counts.join()) throw new Error(`${schema}: not all rows are there`);
      return done;
    };
    const all = await inTurns(
      { load: checked('loaded', () => loaded('loaded')), copy: checked('copied', copy) },
      {
        rounds,
        begin: async () => {
          server.sql('DROP SCHEMA IF EXISTS loaded CASCADE; DROP SCHEMA IF EXISTS copied CASCADE');
          // The same tables with the same indexes.
          const tables = TABLES.map(
            (name) => `CREATE TABLE copied.${name} (LIKE ready.${name} INCLUDING ALL)`,
          );
          server.sql(`CREATE SCHEMA copied; ${tables.join('; ')}`);
        },
        tell: tellTime,
      },
      context,
    );
    const rates = (runs: readonly Timed[]): number[] => runs.map(({ seconds }) => rows / seconds);
    const growths = all.load.map(({ samples }) => {
      const [first, , last] = thirdsOf(samples.slice(Math.floor(samples.length * WARM_UP)));
      return last / first;
    });
    return [
      { name: 'millrace load, from the archive', values: rates(all.load), unit: ' rows/s', digits: 0 },
      { name: 'COPY of ready CSV', values: rates(all.copy), unit: ' rows/s', digits: 0 },
      {
        name: 'rows a second, as a share of COPY',
        values: ratios(all.copy, all.load, ({ seconds }) => seconds),
        wanted: '≥ 0.5',
      },
      { name: 'resident memory, last third against first', values: growths, wanted: '≤ 1.1' },
      {
        name: 'peak resident memory',
        values: all.load.map(({ peakMiB }) => peakMiB),
        unit: ' MiB',
        digits: 0,
      },
    ];
  },
);
