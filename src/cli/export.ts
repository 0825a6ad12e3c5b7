import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { EXIT, messageOf, MillraceError } from '../core/errors.ts';
import { StorageError } from '../core/storage.ts';
import { changesAfter } from '../export/new-files.ts';
import { COMPRESSIONS } from '../core/compression.ts';
import type { ExportOptions, ExportSummary } from '../export/options.ts';
import { runExport } from '../export/run.ts';
import { formatAmount } from '../lib/amount.ts';
import { formatDuration, parseBytes, parseDuration } from '../lib/units.ts';
import { describeDrift, describeLeft } from '../tables/learned/drift.ts';
import { TABLES, type Tables } from '../tables/tables.ts';
import { note, print, usageError, type Io } from './io.ts';
import { storageOf, withPlaces } from './places.ts';
import { KEY_OPTIONS, openerOf } from './key-options.ts';
import {
  commandOf,
  endInstant,
  instant,
  isoOf,
  oneOf,
  type OptionsOf,
  readBy,
  repeated,
  required,
  special,
  wholeNumber,
  WORK,
} from './options.ts';
import { refuseArchives } from './own-folder.ts';
import { StatusLine } from './status-line.ts';
import { fileReports, tellLost } from './file-reports.ts';
import { tableOption, TABLES_OPTION, tablesOf } from './tables-option.ts';

const HELP = `
Examples:
  millrace export ./data/archive --out ./export/events
  millrace export ./data/archive --out ./export/meals --table meals --format ndjson
  millrace export ./data/archive --out s3://acme/lake/meals --table meals --format delta --follow --every 1h
  millrace export ./data/archive --out ./export/labs --type labtest. --since 2026-11-01 --until 2026-11-30 --json

Writes <out>/<table>/dt=<day>/part-….parquet (or .ndjson.gz), and each nested table beside it. Rows have the columns and types
that \`millrace schema\` declares; dt is the day of received_at, in UTC. Times are compared with received_at: --since is
inclusive, --until is exclusive; a day means all of that day, in UTC.

A file gets its name only when it is complete; _export.jsonl lists each file with its rows, bytes and SHA-256. The same command
again exports new events, re-exports what an erasure has changed, and continues after an interruption. Drift is said at the end:
fields without a column, values that do not fit theirs, and columns that earlier rows had and these do not. A sealed archive needs
its keys: --config or --keys. One folder holds one export. A file and its copy in another archive count once.

A file that is short or damaged is read again by each run until all of it can be read. Rows of a file that is missing stay; only what
an erasure or a compaction has noted in the manifest goes.

--format delta makes each table a Delta Lake table, <out>/<table>, that Spark, Databricks, DuckDB and others read and append to.
A run that is killed and started again adds each row once. A table gains the columns that its definition gains. Rows that an
erasure changes are replaced, and older versions of the table go with them.

--follow makes a step every hour (--every) until it is stopped. A day that is over, UTC, becomes one file a table (one add in Delta):
what came in later steps is joined. It holds --out only during a step, so erasures can run between two steps; the step after one
exports again what it has changed.

--out takes a URL (s3://bucket/prefix, azblob://container/prefix, gs://bucket/prefix): files are made in --work and put under their names when they are complete; none is ever
overwritten. A killed run continues with the same --work, or with another one where the archive is the same. Of two runs at once
the second exits 2 and names the first.

--list-new prints which files are new since --after STEP, a path below <out> on each line, without spaces. Take the step to name
next time (--list-new step) before the files, and note it after they are loaded: then nothing is missed, and what is listed
again after a crash is loaded again without effect. With paths it exports first. Other lists: removed (files that an erasure or
a change replaced), days (folders of a table and day that changed) and emptied (those without files now). --json prints all as
lines: {step, action: load|remove, table, dt, file, rows, bytes, sha256}, and last {step, action: end}:
  step=$(millrace export --out ./export/meals --list-new step)
  for file in $(millrace export --out ./export/meals --list-new --after 6); do …; done

Exit codes: 0 done, 1 failed, 2 usage, 3 partly done: interrupted, some records could not be read or made no row,
or files of the archive or of the export are missing.`;

const LISTS = ['files', 'removed', 'days', 'emptied', 'step'] as const;

type List = (typeof LISTS)[number];

const OPTIONS = {
  '--out <place>': required('folder or URL of the export (s3://bucket/prefix); must hold nothing else'),
  ...WORK,
  '--table <table>': tableOption(
    'table to export; tables nested in it are included',
    madeOfEvents(TABLES),
    'events',
  ),
  '--format <format>': oneOf(
    ['parquet', 'ndjson', 'delta'],
    'format of the files; delta: Parquet in Delta Lake tables',
    'parquet',
  ),
  '--compress <how>': oneOf(COMPRESSIONS, 'compression inside the files', 'gzip'),
  '--partition <by>': oneOf(['dt', 'none'], 'a folder a day, or none', 'dt'),
  '--since <time>': readBy(instant, 'only received at or after this time: a day, or ISO 8601'),
  '--until <time>': readBy(endInstant, 'only received before this time; a day is the whole day'),
  '--type <prefix>': repeated('only event types with this prefix; may be repeated', []),
  '--team <id>': repeated('only this team; may be repeated', []),
  '--user <id>': repeated('only this user; may be repeated', []),
  '--file-size <size>': readBy(parseBytes, 'start a new file after this many bytes of records', '256MiB'),
  '--again': 'export everything again and remove the earlier export',
  '--follow': special<boolean | undefined>(
    'export what is new again and again, until it is stopped',
    (option) => option.conflicts(['again', 'listNew']),
  ),
  '--every <duration>': readBy(pause, 'with --follow: time between two steps, at least 1m (default: 1h)'),
  '--list-new [what]': special<List | true | undefined>('print what is new since --after: files', (option) =>
    option.choices(LISTS),
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

/** Milliseconds between two steps. */
const EVERY = 3_600_000;

/** Between two steps an erasure has the folder for itself. */
function pause(text: string): number {
  const ms = parseDuration(text);
  if (ms >= 60_000) return ms;
  throw new RangeError('must be at least 1m');
}

function madeOfEvents(tables: Tables): string[] {
  return tables.ofEvents().map(({ definition }) => definition.name);
}

async function exportTo(paths: readonly string[], options: Options, io: Io): Promise<void> {
  const tables = await tablesOf(options, io);
  if (!madeOfEvents(tables).includes(options.table))
    throw usageError(`--table ${options.table}: the tables are ${madeOfEvents(tables).join(', ')}`);
  const storage = storageOf(options, io, [...paths, options.out]) ?? undefined;
  const step = (changes: Pick<ExportOptions, 'today'> = {}): Promise<ExportSummary> =>
    withPlaces(storage ?? null, (places) =>
      runExport({
        ...prepare(paths, options),
        ...(storage === undefined ? {} : { storage }),
        places,
        tables,
        ...reporting(io),
        opener: () => openerOf(options, io),
        signal: io.signal,
        ...changes,
      }),
    );
  if (options.follow !== true) return report(await step(), options, io);
  const { every = EVERY } = options;
  while (!io.signal.aborted) {
    try {
      report(await step({ today: new Date().toISOString().slice(0, '2026-11-21'.length) }), options, io);
    } catch (error) {
      // Another command has the folder, or a store does not answer for now: the next step does it.
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
  // What is listed goes to stdout alone.
  if (options.listNew !== undefined) render(summary, options.out, (line) => note(io, line));
  else if (options.json === true) print(io, JSON.stringify({ ok, ...summary }));
  else render(summary, options.out, (line) => print(io, line));
  io.setExit(ok ? EXIT.done : EXIT.partial);
}

async function listNew(options: Options, io: Io): Promise<void> {
  const { out, after, listNew: what, json } = options;
  const storage = storageOf(options, io, [out]) ?? undefined;
  const changes = await changesAfter(out, after, storage);
  tellLost(changes, io);
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

type Reporting = Pick<ExportOptions, 'onProgress' | 'onProblem' | 'onReject' | 'onUnknown'>;

function prepare(
  paths: readonly string[],
  options: Options,
): Omit<ExportOptions, keyof Reporting | 'signal' | 'opener' | 'tables' | 'places'> {
  const { out, table, format, compress, partition, type, team, user, fileSize: stepBytes } = options;
  return {
    paths,
    out,
    ...(options.work === undefined ? {} : { work: options.work }),
    table,
    format,
    partition,
    compression: compress,
    selection: {
      since: isoOf(options.since),
      until: isoOf(options.until),
      types: type,
      teams: team,
      users: user,
    },
    stepBytes,
    again: options.again === true,
  };
}

function reporting(io: Io): Reporting {
  const status = new StatusLine(io);
  const tell = status.atMost();
  return {
    ...fileReports(status),
    onUnknown: (...left) => tell(describeLeft(...left)),
  };
}

function render(summary: ExportSummary, out: string, say: (line: string) => void): void {
  const { rows, files, bytes, read, before, passed_over, unfinished, replaced } = summary;
  for (const [table, count] of Object.entries(rows)) say(`${table.padEnd(20)} ${count} rows`);
  say(`${files} files, ${formatAmount(bytes)}, in ${out}`);
  say(`of ${read} files of the archive; ${before} exported before, ${passed_over} without matching events`);
  if (replaced > 0) say(`${replaced} files of earlier runs replaced`);
  if (unfinished > 0) say(`${unfinished} unfinished files of a receiver: included in the next export`);
  if (summary.erased > 0) say(`${summary.erased} records stay sealed: their users were erased`);
  if (summary.missing > 0) say(`${summary.missing} files of an archive are missing: their rows stay`);
  if (summary.lost > 0) say(`${summary.lost} files of the export are gone: --again makes all files again`);
  if (summary.problems > 0) say(`${summary.problems} records or files could not be read`);
  for (const [type, count] of Object.entries(summary.without_table))
    say(`${type}: ${count} events without a table; they are in events`);
  for (const drift of summary.drift) say(describeDrift(drift));
  if (summary.rejects > 0) say(`${summary.rejects} records made no row: see _rejects/`);
  if (!summary.complete) say('interrupted; run the same command to continue');
}
