import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { EXIT, messageOf, MillraceError } from '../core/errors.ts';
import { StorageError } from '../core/storage.ts';
import { changesAfter } from '../export/new-files.ts';
import { COMPRESSIONS } from '../core/compression.ts';
import type { ExportOptions, ExportSummary } from '../export/options.ts';
import { runExport } from '../export/run.ts';
import { aboutBytes, formatDuration, parseBytes, parseDuration } from '../lib/units.ts';
import { describeDrift, describeExtraField } from '../tables/learned/drift.ts';
import type { Tables } from '../tables/tables.ts';
import { note, print, printResult, usageError, type Io } from './io.ts';
import { storageOf, withPlaces } from './places.ts';
import { KEY_OPTIONS, openerOf } from './key-options.ts';
import {
  commandOf,
  isoOf,
  oneOf,
  type OptionsOf,
  readBy,
  required,
  SELECTION,
  special,
  wholeNumber,
  WORK,
} from './options.ts';
import { refuseArchives } from './own-folder.ts';
import { StatusLine } from './status-line.ts';
import { fileReports, reportLost, some } from './file-reports.ts';
import {
  COLUMNS_OPTION,
  hasExtra,
  namedTables,
  TABLES_OPTION,
  tablesOf,
  tablesOption,
  withColumns,
} from './tables-option.ts';

const HELP = `
Examples:
  millrace export ./data/archive --out ./export/events
  millrace export ./data/archive --out ./export/meals --table meals --format ndjson
  millrace export ./data/archive --out ./lake --table all
  millrace export ./data/archive --out s3://acme/lake/meals --table meals --format delta --follow --every 1h
  millrace export ./data/archive --out ./export/labs --type labtest. --since 2026-11-01 --until 2026-11-30 --json

Writes <out>/<table>/dt=<day>/part-….parquet (or .ndjson.gz), and each nested table beside it. Several tables, or all, are made
in one pass over the archive; a table that a later version adds begins with new events, until --again. \`millrace schema\` prints the
columns. dt is the day of received_at in UTC; --since and --until are compared with received_at. Events that are in several
archives count once. A sealed archive needs its keys: --config or --keys.

A file gets its name when it is complete; _export.jsonl lists each file with rows, bytes and SHA-256. The same command again
exports new events, repeats what an erasure changed, and continues after an interruption. Damaged files are read again by each
run. Rows of a missing file stay, unless the manifest notes an erasure or a compaction. The end of the run names fields without
a column, values of another type, and columns that have become empty. One folder holds one export.

--format delta makes each table a Delta Lake table, <out>/<table>, for Spark, Databricks, DuckDB and others. Each row is added
once, also after a kill. Rows that an erasure changes are replaced, and older versions of the table are deleted.

--follow exports every hour (--every) until it is stopped. When a day is over (UTC), its files become one file a table. Erasures
run between two steps.

--out takes a URL (s3://bucket/prefix, azblob://container/prefix, gs://bucket/prefix): files are made in --work and uploaded when
they are complete; none is overwritten. Of two runs at once the second exits 2 and names the first.

--list-new prints the files that are new since --after STEP, as paths below <out>. To miss nothing, take the next step number
(--list-new step) before the files, and store it after they are loaded. Other lists: removed (files that were replaced), days
(folders of a table and day that changed), emptied (days without files now). With archives it exports first. --json prints all
as lines: {step, action: load|remove, table, dt, file, rows, bytes, sha256}, and last {step, action: end}:
  step=$(millrace export --out ./export/meals --list-new step)
  for file in $(millrace export --out ./export/meals --list-new --after 6); do …; done

Exit codes: 0 done, 1 failed, 2 usage, 3 partly done: interrupted, some records could not be read or made no row, or files of the
archive or of the export are missing.`;

const LISTS = ['files', 'removed', 'days', 'emptied', 'step'] as const;

type List = (typeof LISTS)[number];

const OPTIONS = {
  '--out <place>': required('folder or URL of the export (s3://bucket/prefix); must hold nothing else'),
  ...WORK,
  '--table <table>': tablesOption('export'),
  ...COLUMNS_OPTION,
  '--format <format>': oneOf(
    ['parquet', 'ndjson', 'delta'],
    'format of the files; delta: Parquet in Delta Lake tables',
    'parquet',
  ),
  '--compress <how>': oneOf(COMPRESSIONS, 'compression inside the files', 'gzip'),
  '--partition <by>': oneOf(['dt', 'none'], 'a folder a day, or none', 'dt'),
  ...SELECTION,
  '--file-size <size>': readBy(parseBytes, 'start a new file after this many bytes of records', '256MiB'),
  '--again': 'export everything again and remove the earlier export',
  '--follow': special<boolean | undefined>(
    'export new events again and again, until it is stopped',
    (option) => option.conflicts(['again', 'listNew']),
  ),
  '--every <duration>': readBy(pause, 'with --follow: time between two steps, at least 1m (default: 1h)'),
  '--list-new [what]': special<List | true | undefined>(
    'print what is new since --after (default: files)',
    (option) => option.choices(LISTS),
  ),
  '--after <step>': readBy(wholeNumber(), 'the last step that was loaded', '0'),
  '--config <file>': 'the config: keys of its sinks open sealed records, and its `tables` are added',
  '--json': 'end with a line of JSON: {ok, steps, read, records, rows, files, bytes, …}',
  ...TABLES_OPTION,
  ...KEY_OPTIONS,
};
type Options = OptionsOf<typeof OPTIONS>;

export function exportCommand(io: Io): Command {
  return commandOf('export', OPTIONS, HELP)
    .description('turn archives into table rows: Parquet, Delta Lake or NDJSON, by day')
    .argument('[path...]', 'folders or URLs of archives, or single files of one')
    .action(async (paths: readonly string[], options: Options) => {
      if (paths.length === 0 && options.listNew === undefined)
        throw usageError('name an archive to export, or say --list-new');
      if (options.every !== undefined && options.follow !== true) throw usageError('--every needs --follow');
      refuseArchives(options.out);
      if (paths.length > 0) await exportTo(paths, options, io);
      if (options.listNew !== undefined) await listNew(options, io);
    });
}

/** Default milliseconds between two steps. */
const EVERY_MS = 3_600_000;

/** Erasures run between two steps, so these are not too close. */
function pause(text: string): number {
  const ms = parseDuration(text);
  if (ms >= 60_000) return ms;
  throw new RangeError('must be at least 1m');
}

/** The named tables as an export notes them, whatever their order. */
function tableIn(tables: Tables, named: readonly string[] = ['events']): string {
  const names = namedTables(tables, named);
  return names === 'all' ? names : [...new Set(names)].toSorted().join(',');
}

async function exportTo(paths: readonly string[], options: Options, io: Io): Promise<void> {
  const { columns } = options;
  const tables = withColumns(await tablesOf(options, io), options.table ?? ['events'], columns);
  const table = tableIn(tables, options.table);
  const storage = storageOf(options, io, [...paths, options.out]);
  const { work, since, until, type, team, user } = options;
  const step = (changes: Pick<ExportOptions, 'today'> = {}): Promise<ExportSummary> => {
    const status = new StatusLine(io);
    const name = status.atMost();
    return withPlaces(storage, (places) =>
      runExport({
        paths,
        out: options.out,
        ...(work === undefined ? {} : { work }),
        table,
        format: options.format,
        partition: options.partition,
        compression: options.compress,
        selection: { since: isoOf(since), until: isoOf(until), types: type, teams: team, users: user },
        stepBytes: options.fileSize,
        again: options.again === true,
        ...(storage === null ? {} : { storage }),
        places,
        tables,
        ...(columns === undefined ? {} : { columns }),
        ...fileReports(status),
        onUnknown: (...left) => hasExtra(options) && name(describeExtraField(...left)),
        opener: () => openerOf(options, io),
        signal: io.signal,
        ...changes,
      }),
    );
  };
  if (options.follow !== true) return report(await step(), options, io);
  const { every = EVERY_MS } = options;
  while (!io.signal.aborted) {
    try {
      report(await step({ today: new Date().toISOString().slice(0, '2026-11-21'.length) }), options, io);
    } catch (error) {
      // Another command has the folder, or a store does not answer: the next step tries again.
      if (!(error instanceof MillraceError && error.retryable) && !(error instanceof StorageError))
        throw error;
      note(io, `${messageOf(error)}; trying again in ${formatDuration(every)}`);
    }
    await wait(every, undefined, { signal: io.signal }).catch(() => undefined);
  }
}

function report(summary: ExportSummary, options: Options, io: Io): void {
  const { complete, rejects, problems, missing, lost } = summary;
  const ok = complete && rejects + problems + missing + lost === 0;
  const lines = linesOf(hasExtra(options) ? summary : { ...summary, drift: [] }, options.out);
  // With --list-new, stdout has only the list.
  if (options.listNew !== undefined) for (const line of lines) note(io, line);
  else printResult(io, options, { ok, ...summary }, ...lines);
  io.setExit(ok ? EXIT.done : EXIT.partial);
}

async function listNew(options: Options, io: Io): Promise<void> {
  const { out, after, listNew: what, json } = options;
  const storage = storageOf(options, io, [out]) ?? undefined;
  const changes = await changesAfter(out, after, storage);
  reportLost(changes, io);
  const { step, files, days, emptied } = changes;
  if (json === true) {
    for (const line of [...files, { step, action: 'end' }]) print(io, JSON.stringify(line));
    return;
  }
  const named = (wanted: 'load' | 'remove'): string[] =>
    files.filter(({ action }) => action === wanted).map(({ file }) => file);
  const lists: Readonly<Record<List, () => readonly string[]>> = {
    files: () => named('load'),
    removed: () => named('remove'),
    days: () => days,
    emptied: () => emptied,
    step: () => [String(step)],
  };
  for (const line of lists[what === true || what === undefined ? 'files' : what]()) print(io, line);
}

function linesOf(summary: ExportSummary, out: string): string[] {
  const { rows, files, bytes, read, before, passed_over, unfinished, replaced } = summary;
  const { erased, missing, lost, problems, rejects } = summary;
  return [
    ...Object.entries(rows).map(([table, count]) => `${table.padEnd(20)} ${count} rows`),
    `${files} files, ${aboutBytes(bytes)}, in ${out}`,
    `of ${read} files of the archive; ${before} exported before, ${passed_over} without matching events`,
    ...some(replaced, 'files of earlier runs replaced'),
    ...some(unfinished, 'unfinished files of a receiver: included in the next export'),
    ...some(erased, 'records stay sealed: their users were erased'),
    ...some(missing, 'files of an archive are missing: their rows stay'),
    ...some(lost, 'files of the export are gone: --again exports everything again'),
    ...some(problems, 'records or files could not be read'),
    ...Object.entries(summary.without_table).map(
      ([type, count]) => `${type}: ${count} events without a table; they are in events`,
    ),
    ...summary.drift.map(describeDrift),
    ...some(rejects, 'records made no row: see _rejects/'),
    ...(summary.complete ? [] : ['interrupted; run the same command to continue']),
  ];
}
