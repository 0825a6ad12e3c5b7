import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { EXIT, messageOf, MillraceError } from '../core/errors.ts';
import { backoff } from '../deliver/retry.ts';
import { formatDuration, parseDuration } from '../lib/units.ts';
import type { Database } from '../tables/database/database.ts';
import type { LoadOptions, LoadSummary } from '../export/load/options.ts';
import { runLoad } from '../export/load/run.ts';
import { describeDrift, describeLeft } from '../tables/learned/drift.ts';
import type { Tables } from '../tables/tables.ts';
import { fileReports } from './file-reports.ts';
import { type Io, print, usageError } from './io.ts';
import { KEY_OPTIONS, openerOf } from './key-options.ts';
import { commandOf, type OptionsOf, readBy, repeated, required, textOr } from './options.ts';
import { storageOf, withPlaces } from './places.ts';
import { StatusLine } from './status-line.ts';
import { TABLES_OPTION, tablesOf } from './tables-option.ts';

const HELP = `
Examples:
  millrace load ./data/archive --to postgres://loader@db.example/warehouse --table all
  millrace load ./data/archive --to duckdb:./warehouse.duckdb --table events --table meals
  millrace load ./data/archive --to postgres://loader@db.example/warehouse --follow

Brings a database to what archives hold: their finished files, as rows of the tables that \`millrace schema\` declares. It creates
the tables and their <table>_latest views. The same command again loads what is new, removes the rows that an erasure has taken
out of the archive, and continues after an interruption; no event is there twice, wherever a run was ended. A table that was
loaded once is kept up to date by every later load; if it is a learned one, each load needs its definition: --tables, or
\`tables:\` in the --config. Tables named _millrace_… say what was loaded.

A row that the database does not take, such as by a constraint of yours, is named and set aside. The others are loaded, and the
command tries it again when it is started the next time.

A password is best kept out of the command line: set PGPASSWORD, or use a ~/.pgpass file. DuckDB files need the package
@duckdb/node-api beside millrace; with --follow the file is closed between rounds, so that others can read it.
No query finds rows that were removed after an erasure, but DuckDB keeps their bytes in free blocks of the file until it writes over
them. To be rid of them, copy the database into a new file (ATTACH, COPY FROM DATABASE) or load the archive into a new one, and delete the
old file.
A sealed archive needs its keys: --config or --keys.

Exit codes: 0 done, 1 failed, 2 usage or in use by another load, 3 partly done: interrupted, or some records could not be read
or made no row.`;

/** Files are loaded together until they have held so many bytes of records: a transaction for each would cost more. */
const STEP_BYTES = 64 * 1024 * 1024;
/** Notes of each kind of thing are given once, and no more than so many. */
const MOST_TOLD = 200;
/** Milliseconds by which a round waits longer, at most, while the database is gone: all that load into it come back at once. */
const LONGEST_BACKOFF = 60_000;

const OPTIONS = {
  '--to <address>': required('postgres://user@host:5432/database or duckdb:FILE'),
  '--table <table>': repeated(
    'table to load with those nested in it, or all; may be repeated (default: events)',
    [],
  ),
  '--schema <name>': textOr('public', 'schema of the tables in PostgreSQL'),
  '--follow': 'keep loading what is new, until it is stopped',
  '--every <duration>': readBy(parseDuration, 'with --follow: time between two rounds', '5s'),
  '--config <file>': 'open sealed records with the keys of the sinks of this config; use its `tables:`',
  '--json': 'end each round with a line of JSON: {ok, files, records, rows, duplicates, …}',
  ...TABLES_OPTION,
  ...KEY_OPTIONS,
};
type Options = OptionsOf<typeof OPTIONS>;

export function loadCommand(io: Io): Command {
  return commandOf('load', OPTIONS, HELP)
    .description('load archives into PostgreSQL or a DuckDB file, once or continuously')
    .argument('<folder...>', 'folders or URLs of archives')
    .action(async (paths: readonly string[], options: Options) => {
      const tables = await tablesOf(options, io);
      const target = await targetOf(options.to, options.schema);
      await withPlaces(storageOf(options, io, paths), async (places) => {
        const work: LoadOptions = {
          paths,
          places,
          tables,
          wanted: namesIn(tables, options.table),
          stepBytes: STEP_BYTES,
          retriesRefused: true,
          opener: () => openerOf(options, io),
          signal: io.signal,
          ...reporting(io),
        };
        const begin = (summary: LoadSummary): void => {
          report(summary, target, options, io);
          if (!isOk(summary)) io.setExit(EXIT.partial);
        };
        if (options.follow === true) await follow(target, work, options, io, begin);
        else begin(await round(target, work));
      });
    });
}

/** Names of tables; those nested in a named one come along. */
function namesIn(tables: Tables, named: readonly string[]): readonly string[] {
  const all = tables.ofEvents().map(({ definition }) => definition.name);
  if (named.includes('all')) return all;
  const unknown = named.find((name) => !all.includes(name));
  if (unknown !== undefined) throw usageError(`--table ${unknown}: must be all, or one of ${all.join(', ')}`);
  return named.length === 0 ? ['events'] : named.flatMap((name) => tables.withNested(name));
}

/** One round over its own connection. */
async function round(target: Target, work: LoadOptions): Promise<LoadSummary> {
  let database: Database | null = null;
  try {
    database = await target.open(work.signal);
    return await runLoad(database, work);
  } catch (error) {
    // Its connection ends with the signal.
    if (work.signal.aborted) return NOTHING;
    throw target.explain(error);
  } finally {
    await database?.close();
  }
}

/** @param begin told of the first round that has ended; of later ones only what is new is reported */
async function follow(
  target: Target,
  work: LoadOptions,
  options: Options,
  io: Io,
  begin: (first: LoadSummary) => void,
): Promise<void> {
  const status = new StatusLine(io);
  let isFirst = true;
  let pause = 0;
  for (let failures = 0; ;) {
    await wait(pause, undefined, { signal: io.signal }).catch(() => undefined);
    if (io.signal.aborted) return;
    try {
      const summary = await round(target, { ...work, retriesRefused: isFirst });
      [failures, pause] = [0, options.every];
      const { files, replaced } = summary;
      if (isFirst) begin(summary);
      else if (files > 0 || replaced > 0) report(summary, target, options, io);
      isFirst = false;
    } catch (error) {
      // What passes by itself ends no load, be it at its beginning.
      if (!(error instanceof MillraceError) || !error.retryable) throw error;
      failures += 1;
      pause = options.every + Math.round(backoff(failures, { initial: options.every, max: LONGEST_BACKOFF }));
      status.note(`${error.message}; trying again in ${formatDuration(pause)}`);
    }
  }
}

/** What was interrupted before its first transaction. */
const NOTHING: LoadSummary = {
  files: 0,
  before: 0,
  replaced: 0,
  missing: 0,
  unfinished: 0,
  records: 0,
  duplicates: 0,
  rows: {},
  drift: [],
  rejects: 0,
  problems: 0,
  erased: 0,
  complete: false,
};

type Reporting = Pick<LoadOptions, 'onProgress' | 'onProblem' | 'onReject' | 'onUnknown' | 'onWithoutTable'>;

function reporting(io: Io): Reporting {
  const status = new StatusLine(io);
  const told = new Set<string>();
  const unlessTold = (line: string): void => {
    if (told.has(line) || told.size >= MOST_TOLD) return;
    told.add(line);
    status.note(line);
  };
  return {
    ...fileReports(status),
    onUnknown: (...left) => unlessTold(describeLeft(...left)),
    onWithoutTable: (type) =>
      unlessTold(`events of type ${type}: no table knows their shape; they are in events only`),
  };
}

function isOk({ complete, rejects, problems }: LoadSummary): boolean {
  return complete && rejects === 0 && problems === 0;
}

const NO_ARCHIVE =
  'no record of an archive was read: rows of a backfill are loaded by the statements of `millrace schema --dialect`';

function report(summary: LoadSummary, target: Target, { json }: Options, io: Io): void {
  if (json === true) {
    print(io, JSON.stringify({ ok: isOk(summary), ...summary }));
    return;
  }
  const { rows, files, before, records, replaced, duplicates, missing, unfinished, erased } = summary;
  for (const [table, count] of Object.entries(rows)) print(io, `${table.padEnd(20)} ${count} rows`);
  print(io, `${records} records of ${files} files, in ${target.name}; ${before} files loaded before`);
  if (replaced > 0) print(io, `${replaced} files have changed or were removed: their old rows are gone`);
  if (duplicates > 0) print(io, `${duplicates} records of events that were there already`);
  if (missing > 0) print(io, `${missing} files of a manifest are missing: their rows stay`);
  if (unfinished > 0)
    print(io, `${unfinished} unfinished files of a receiver: loaded when they are finished`);
  if (erased > 0) print(io, `${erased} records stay sealed: their users were erased`);
  if (summary.problems > 0) print(io, `${summary.problems} records or files could not be read`);
  if (summary.problems > 0 && records + before === 0) print(io, NO_ARCHIVE);
  for (const drift of summary.drift) print(io, describeDrift(drift));
  if (summary.rejects > 0) print(io, `${summary.rejects} records made no row`);
  if (!summary.complete) print(io, 'interrupted; run the same command to continue');
}

/** Milliseconds until a database that does not answer counts as unreachable. */
const TIMEOUT = 15_000;

/** The database that is loaded into. */
interface Target {
  /** As it may be shown: without a password. */
  readonly name: string;
  /** @param signal ends the opening and, where it can, what runs then */
  open(signal: AbortSignal): Promise<Database>;
  /** What an error of it means. */
  explain(error: unknown): unknown;
}

/**
 * @param address `postgres://…` or `duckdb:FILE`
 * @param schema of PostgreSQL
 * @throws MillraceError usage
 */
async function targetOf(address: string, schema: string): Promise<Target> {
  if (/^postgres(ql)?:\/\//.test(address)) {
    const { PostgresDatabase } = await import('../sinks/postgres/database.ts');
    const { nameOf } = await import('../vendors/postgres/connection.ts');
    const { toMillraceError } = await import('../vendors/postgres/failure.ts');
    const name = nameOf(address);
    return {
      name,
      open: (signal) =>
        PostgresDatabase.openAlone({ connectionString: address, schema, timeout: TIMEOUT }, signal),
      explain: (error) => toMillraceError(name, error),
    };
  }
  const [, file] = /^duckdb:(.+)$/.exec(address) ?? [];
  if (file === undefined)
    throw usageError(
      '--to must be postgres://user@host:5432/database or duckdb:FILE (for BigQuery see To BigQuery in deploy/README.md)',
    );
  const { DuckDBDatabase } = await import('../export/load/duckdb.ts');
  return {
    name: file,
    open: () => DuckDBDatabase.open(file),
    explain: (error) =>
      error instanceof MillraceError
        ? error
        : new MillraceError('database_refused', `${file}: ${messageOf(error)}`, { cause: error }),
  };
}
