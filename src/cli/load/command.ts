import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { EXIT, MillraceError } from '../../core/errors.ts';
import { backoff } from '../../deliver/retry.ts';
import { formatDuration, parseDuration } from '../../lib/units.ts';
import { type LoadOptions, type LoadSummary, noCounts } from '../../export/load/options.ts';
import { runLoad } from '../../export/load/run.ts';
import { describeDrift, describeExtraField } from '../../tables/learned/drift.ts';
import type { Tables } from '../../tables/tables.ts';
import { fileReports, some } from '../file-reports.ts';
import { closing, type Io, printResult, usageError } from '../io.ts';
import { KEY_OPTIONS, openerOf } from '../key-options.ts';
import { commandOf, type OptionsOf, readBy, required, special, textOr } from '../options.ts';
import { withArchives } from '../places.ts';
import { StatusLine } from '../status-line.ts';
import {
  COLUMNS_OPTION,
  hasExtra,
  madeOfEvents,
  namedTables,
  TABLES_OPTION,
  tablesOf,
  tablesOption,
  withColumns,
} from '../tables-option.ts';
import { printState } from './status.ts';
import { type Target, targetOf } from './target.ts';

const HELP = `
Examples:
  millrace load ./data/archive --to postgres://loader@db.example/warehouse --table all
  millrace load ./data/archive --to duckdb:./warehouse.duckdb --table events --table meals
  millrace load ./data/archive --to postgres://loader@db.example/warehouse --follow
  millrace load ./data/history --to duckdb:./warehouse.duckdb
  millrace load ./data/archive --to duckdb:./warehouse.duckdb --status

Loads the closed files of archives as rows of the tables that \`millrace schema\` declares. It creates the tables and their
<table>_latest views. The same command again loads new files, removes rows that an erasure removed from the archive, and continues
after an interruption; no event is loaded twice. Later loads keep all loaded tables up to date; a learned table needs its
definition each time: --tables, or \`tables:\` in the --config. Tables named _millrace_… record what was loaded.

The output folder of \`millrace backfill\` is loaded as a whole, each file into the table of its name. Rows that the backfill has
replaced, or that have vanished at the provider (_pulls.ndjson), are removed, now and whenever such rows are loaded later.

A row that the database refuses, for example by one of your constraints, is named and set aside; the others are loaded. The next
run tries it again. A sealed archive needs its keys: --config or --keys.

--columns makes a table with some of its columns. Give it with each load: one without it adds the other columns, and loads all files
again. A table that has more columns already is refused.

--status loads nothing and shows what the database holds: rows, users, the oldest and the newest event of each table, the last
load, and how many files of the named folders are loaded. A table that is missing in the database ends it with 3.

Keep passwords out of the command line: set PGPASSWORD, or use ~/.pgpass. DuckDB files need the package @duckdb/node-api beside
millrace; with --follow the file is closed between rounds, so that others can read it. After an erasure DuckDB keeps deleted bytes
in free blocks of the file: to remove them, copy the database into a new file (ATTACH, COPY FROM DATABASE), or load the archive
into a new file, and delete the old one.

Exit codes: 0 done, 1 failed, 2 usage or in use by another load, 3 partly done: interrupted, some records could not be read or
made no row, or loaded files are missing.`;

/** Bytes of records in one transaction. */
const STEP_BYTES = 64 * 1024 * 1024;
/** Different notes about fields and types that are printed. */
const MOST_NOTES = 200;
/** Longest extra milliseconds between rounds while the database is unreachable. */
const LONGEST_BACKOFF_MS = 60_000;

const OPTIONS = {
  '--to <address>': required('postgres://user@host:5432/database or duckdb:FILE'),
  '--table <table>': tablesOption('load'),
  ...COLUMNS_OPTION,
  '--schema <name>': textOr('public', 'schema of the tables in PostgreSQL'),
  '--follow': 'keep loading new files, until it is stopped',
  '--status': special<boolean | undefined>('load nothing; show what the database holds', (option) =>
    option.conflicts('follow'),
  ),
  '--metrics': special<boolean | undefined>(
    'with --status: the newest event of each table as a metric for Prometheus',
    (option) => option.conflicts('json'),
  ),
  '--every <duration>': readBy(parseDuration, 'with --follow: time between two rounds', '5s'),
  '--config <file>': 'open sealed records with the keys of the sinks of this config; use its `tables:`',
  '--json': 'end each round with a line of JSON: {ok, files, records, rows, duplicates, …}',
  ...TABLES_OPTION,
  ...KEY_OPTIONS,
};
type Options = OptionsOf<typeof OPTIONS>;

export function loadCommand(io: Io): Command {
  return commandOf('load', OPTIONS, HELP)
    .description('load archives and backfills into PostgreSQL or a DuckDB file, once or continuously')
    .argument('[folder...]', 'folders or URLs of archives, or output folders of backfills')
    .action(async (paths: readonly string[], options: Options) => {
      const tables = withColumns(await tablesOf(options, io), options.table ?? [], options.columns);
      const target = await targetOf(options.to, options.schema);
      const isToLoad = options.status !== true;
      if (isToLoad && options.metrics === true) throw usageError('--metrics needs --status');
      if (isToLoad && paths.length === 0) throw usageError('name an archive or a backfill to load');
      if (!isToLoad && options.table !== undefined)
        throw usageError('--status shows all tables: take out --table');
      await withArchives(paths, options, io, async (places) => {
        const work: LoadOptions = {
          paths,
          places,
          tables,
          wanted: wantedOf(tables, options.table),
          stepBytes: STEP_BYTES,
          isFirstRound: true,
          opener: () => openerOf(options, io),
          signal: io.signal,
          ...reporting(io),
          ...(hasExtra(options) ? {} : { onUnknown: () => undefined }),
        };
        if (!isToLoad) return printState(target, work, options, io);
        if (options.follow === true) await follow(target, work, options, io);
        else report(await round(target, work), target, options, io, true);
      });
    });
}

/** Names of the wanted tables and their nested tables. */
function wantedOf(tables: Tables, named: readonly string[] = []): readonly string[] {
  const names = namedTables(tables, named);
  return names === 'all' ? madeOfEvents(tables) : names.flatMap((name) => tables.withNested(name));
}

/** One round over its own connection. */
async function round(target: Target, work: LoadOptions): Promise<LoadSummary> {
  try {
    await using database = closing(await target.open(work.signal));
    return await runLoad(database, work);
  } catch (error) {
    // The signal ends the connection.
    if (work.signal.aborted)
      return { ...noCounts(), before: 0, missing: 0, unfinished: 0, drift: [], complete: false };
    throw target.explain(error);
  }
}

/** Reports the first round, and later rounds that load something. */
async function follow(target: Target, work: LoadOptions, options: Options, io: Io): Promise<void> {
  const status = new StatusLine(io);
  let isFirst = true;
  let pause = 0;
  for (let failures = 0; ;) {
    await wait(pause, undefined, { signal: io.signal }).catch(() => undefined);
    if (io.signal.aborted) return;
    try {
      const summary = await round(target, { ...work, isFirstRound: isFirst });
      [failures, pause] = [0, options.every];
      const { files, replaced } = summary;
      if (isFirst || files > 0 || replaced > 0) report(summary, target, options, io, isFirst);
      isFirst = false;
    } catch (error) {
      if (!(error instanceof MillraceError) || !error.retryable) throw error;
      failures += 1;
      pause =
        options.every + Math.round(backoff(failures, { initial: options.every, max: LONGEST_BACKOFF_MS }));
      status.note(`${error.message}; trying again in ${formatDuration(pause)}`);
    }
  }
}

type Reporting = Pick<LoadOptions, 'onProgress' | 'onProblem' | 'onReject' | 'onUnknown' | 'onWithoutTable'>;

function reporting(io: Io): Reporting {
  const status = new StatusLine(io);
  const noted = new Set<string>();
  const noteOnce = (line: string): void => {
    if (noted.has(line) || noted.size >= MOST_NOTES) return;
    noted.add(line);
    status.note(line);
  };
  return {
    ...fileReports(status),
    onUnknown: (...left) => noteOnce(describeExtraField(...left)),
    onWithoutTable: (type) =>
      noteOnce(`events of type ${type} have no table of their own; they are in events`),
  };
}

function isOk({ complete, rejects, problems, missing }: LoadSummary): boolean {
  return complete && rejects + problems + missing === 0;
}

const NO_ARCHIVE =
  'no record of an archive was read: rows of `millrace pull` are loaded by the statements of `millrace schema --dialect`';

/** The first round decides the exit code. */
function report(summary: LoadSummary, target: Target, options: Options, io: Io, isFirst: boolean): void {
  const { rows, files, before, records, replaced, duplicates, vanished } = summary;
  const { missing, unfinished, erased, problems, rejects } = summary;
  printResult(
    io,
    options,
    { ok: isOk(summary), ...summary },
    ...Object.entries(rows).map(([table, count]) => `${table.padEnd(20)} ${count} rows`),
    `${records} records of ${files} files, in ${target.name}; ${before} files loaded before`,
    ...some(replaced, 'files have changed or were removed: their old rows are gone'),
    ...some(duplicates, 'records of events that were there already'),
    ...some(vanished, 'rows removed: a later pull does not have them, or replaces them'),
    ...some(missing, 'loaded files are missing: their rows stay'),
    ...some(unfinished, 'unfinished files of a receiver: loaded when they are closed'),
    ...some(erased, 'records stay sealed: their users were erased'),
    ...some(problems, 'records or files could not be read'),
    ...(problems > 0 && records + before === 0 ? [NO_ARCHIVE] : []),
    ...(hasExtra(options) ? summary.drift.map(describeDrift) : []),
    ...some(rejects, 'records made no row'),
    ...(summary.complete ? [] : ['interrupted; run the same command to continue']),
  );
  if (isFirst && !isOk(summary)) io.setExit(EXIT.partial);
}
