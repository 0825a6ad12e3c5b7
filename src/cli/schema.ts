import type { Command } from 'commander';
import { filesOfBackfill } from '../export/load/backfill-rows.ts';
import { changesAfter, type Changes } from '../export/new-files.ts';
import type { Dialect } from '../tables/sql/dialects/dialect.ts';
import { DIALECTS, type DialectName } from '../tables/sql/dialects/registry.ts';
import { dayOf } from '../tables/sql/dialects/source.ts';
import {
  erasePulls,
  type PullsErasure,
  schemaOf,
  type SchemaOptions,
  type TableSchema,
} from '../tables/sql/schema.ts';
import { notePulls, WHOLE_PULLS } from '../tables/sql/vanished.ts';
import { TABLES, type TableEntry } from '../tables/tables.ts';
import { messageOf } from '../core/errors.ts';
import { isCalendarDay } from '../lib/calendar-day.ts';
import { reportLost } from './file-reports.ts';
import { inferCommand } from './infer.ts';
import { printSeen, schemaDiffCommand } from './schema-seen.ts';
import { print, printReport, usageError, type Io } from './io.ts';
import { commandOf, oneOf, type OptionsOf, readBy, repeated, special, wholeNumber } from './options.ts';
import { TABLES_OPTION, tablesOf } from './tables-option.ts';
import { storageOf } from './places.ts';
import { KEY_OPTIONS } from './key-options.ts';

const PARTS = ['tables', 'upgrade', 'views', 'load', 'vanished', 'erase'] as const;

const HELP = `
Examples:
  millrace schema   event types that were seen
  millrace schema daily.data.meal. --json   their fields, kinds of values, first and last seen
  millrace schema diff --since 2026-11-21
  millrace schema --dialect duckdb --only tables,views | duckdb health.db
  millrace schema --dialect duckdb --load --export ./export/meals --after 6 | duckdb health.db
  millrace schema meals --dialect postgres --load --from ./export/meals/meals/ | psql
  millrace schema meals --dialect redshift --load --replace --from s3://acme/meals/meals/dt=2026-11-21/ | psql
  millrace schema --dialect bigquery --backfill ./data/history --from gs://acme/history | bq query --use_legacy_sql=false
  millrace schema --dialect postgres --upgrade | psql
  millrace schema --dialect bigquery --dbt > models/millrace.yml
  millrace schema --dialect bigquery --erase 6b0e9a52-0000-4000-8000-0000000000aa

Without --dialect it shows the types and fields of accepted events. With --dialect it prints SQL for the rows of \`millrace
export\`, \`ndjson\` and \`backfill\`: tables, partitioned and sorted for the warehouse; views of the newest version of each row
(<table>_latest); and load statements. The view of a nested table needs the view of its parent table. Without a table it prints
all; without --from the location is a placeholder.

--from names a file, a folder of files, or an address that the warehouse reads. File names show the format; for a folder give
--format and --compress as to \`millrace export\` (default: parquet; for PostgreSQL ndjson and gzip).

--export names a folder or URL of \`millrace export\`, and prints the loads of what is new in it since --after STEP. Each changed day
replaces what the table has of it. With --from the warehouse reads a copy of it there.

A load replaces rows of the same events, so it can be repeated. --replace also removes other rows of that day, such as rows that
an erasure removed from the export. Use it for tables that are loaded from one export only.

--backfill names the output folder of \`millrace backfill\`, and prints the loads of its files, then statements that note its whole pulls
(_pulls.ndjson) and remove the rows that these do not have, as \`millrace load\` does. --export ends with these removals, and
--only vanished prints them alone: an event that is loaded later can be of an item that had vanished before.

--dbt prints the tables as a source of dbt: descriptions, freshness by _received_at (by _loaded_at where rows have no event), and
tests: required columns have values, and each key is once in the view of the newest versions.

--upgrade adds missing columns to tables of an earlier version, and replaces the views. Redshift and Databricks have no repeatable
statement for that.

--erase removes the rows of a user, and then rows of the user's events whose documents name somebody else; these are found by the
table events, which is created if missing. Without a table it also removes the user from the tables of pulls of --backfill and
\`millrace load\`, which are created if missing.`;

const OPTIONS = {
  '--dialect <dialect>': oneOf(Object.keys(DIALECTS) as DialectName[], 'the warehouse'),
  '--only <parts>': special<readonly Part[] | undefined>(`some of ${PARTS.join(',')}`, (option) =>
    option.argParser(partsOf),
  ),
  '--load': 'only the load statements',
  '--from <place>':
    'with --dialect: a file, folder or address with the rows; without it: an archive to read instead of asking the receiver',
  '--export <place>': 'only the loads of what is new in this export, a folder or URL',
  '--backfill <folder>': 'only the loads of the output folder of a backfill; they remove what has vanished',
  '--after <step>': readBy(wholeNumber(), 'the last step of the export that was loaded', '0'),
  '--format <format>': oneOf(['parquet', 'ndjson'], 'what a folder holds'),
  '--compress <how>': oneOf(['gzip', 'zstd', 'none'], 'how its NDJSON is compressed'),
  '--replace': 'also remove other rows of the day whose folder --from names',
  '--dbt': 'a source for dbt in YAML: tables, views, columns, freshness and tests',
  '--upgrade': 'only statements that complete tables of an earlier version',
  '--erase <user>': repeated('only statements that remove the rows of this user'),
  '--erase-day <day>': readBy(dayText, 'only statements that remove the rows that came in on this day, UTC'),
  '--client-user': 'the ids to erase are client user ids',
  '--config <file>': 'the config of the receiver; its `tables` are added, and it says how stores are reached',
  '--json':
    'print one JSON document: [{table, createTable, createIndexes, describe, createView, load, vanished, upgrade, erase, eraseByEvent}]',
  ...KEY_OPTIONS,
  ...TABLES_OPTION,
};
type Options = OptionsOf<typeof OPTIONS>;

type Part = (typeof PARTS)[number];

export function schemaCommand(io: Io): Command {
  return commandOf('schema', OPTIONS, HELP)
    .description('show what events look like; with --dialect print tables, views and load statements')
    .argument('[type-or-table]', 'only event types that begin so; with --dialect one table')
    .action(async (table: string | undefined, options: Options) => {
      const { dialect, from } = options;
      if (dialect === undefined) {
        refuseSql(table, options);
        return printSeen(table, options, io);
      }
      const tables = await tablesOf(options, io);
      if (table !== undefined && !tables.has(table))
        throw usageError(`there is no table ${table}; there are ${[...tables.keys()].join(', ')}`);
      const entries = [...tables.values()].filter(
        ({ definition }) => table === undefined || definition.name === table,
      );
      if (options.dbt === true) {
        // The writer of YAML takes as long to load as the rest of a command.
        const { dbtSources } = await import('../tables/sql/dbt.ts');
        print(io, dbtSources(entries, DIALECTS[dialect]));
        return;
      }
      if (options.export !== undefined) {
        const storage = storageOf(options, io, [options.export]);
        const changes = await changesAfter(options.export, options.after, storage ?? undefined);
        reportLost(changes, io);
        const loads = loadsOfExport(changes, entries, dialect, from ?? options.export);
        for (const statements of loads) print(io, statements);
        return;
      }
      if (options.backfill !== undefined) {
        const made = await filesOfBackfill(options.backfill, tables);
        const loads = loadsOfBackfill(made, entries, dialect, from ?? options.backfill);
        for (const statements of loads) print(io, statements);
        return;
      }
      if (from !== undefined && table === undefined)
        throw usageError('--from needs a table: it is where its rows are');
      const parts = wantedParts(options);
      const details = detailsOf(options);
      const schemas = readable(() => entries.map((entry) => schemaOf(entry, dialect, from, details)));
      // The pulls of a user are of no table alone.
      const pulls = table === undefined && parts.includes('erase') ? erasePulls(dialect, details) : [];
      printReport(io, options, [...schemas, ...pulls], () => render(schemas, pulls, parts, dialect));
    })
    .addCommand(inferCommand(io))
    .addCommand(schemaDiffCommand(io));
}

/** @throws MillraceError usage for a table or an option of SQL without --dialect */
function refuseSql(name: string | undefined, options: Options): void {
  const { only, load, format, compress, replace, dbt, upgrade, erase, eraseDay, clientUser, tables } =
    options;
  const flags = [only, load, format, compress, replace, dbt, upgrade, eraseDay, clientUser];
  flags.push(options.export, options.backfill);
  const isSql = flags.some((given) => given !== undefined) || erase.length + tables.length > 0;
  if (!isSql && !TABLES.has(name ?? '')) return;
  throw usageError(`--dialect is required: ${Object.keys(DIALECTS).join(', ')}`);
}

/** Statements for each day that has changed in an export, or for each new file of an export without days. */
function loadsOfExport(
  { terms: format, days, emptied, files }: Changes,
  entries: readonly TableEntry[],
  dialect: DialectName,
  from: string,
): string[] {
  const schemaAt = (place: string, options: SchemaOptions): TableSchema | null => {
    const name = place.slice(0, place.indexOf('/'));
    const entry = entries.find(({ definition }) => definition.name === name);
    if (entry === undefined) return null;
    return schemaOf(entry, dialect, `${from.replace(/\/$/, '')}/${place}`, { format, ...options });
  };
  const single = files.filter(({ action, dt }) => action === 'load' && dt === null);
  return readable(() => {
    const loads = [
      ...days.filter(dayOf).map((day) => schemaAt(`${day}/`, { replace: true })?.load),
      ...single.map(({ file }) => schemaAt(file, {})?.load),
      ...emptied.filter(dayOf).map((day) => schemaAt(`${day}/`, { eraseDay: day.slice(-10) })?.erase),
    ].filter((statements) => typeof statements === 'string');
    const changed = new Set([...days, ...single.map(({ file }) => file)].map((place) => place.split('/')[0]));
    const schemas = entries.filter(({ definition }) => changed.has(definition.name));
    const declared = schemas.map((entry) => schemaOf(entry, dialect));
    return [...loads, ...vanishedBy(declared, dialect)];
  });
}

function detailsOf({ format, compress, replace, erase, eraseDay, clientUser }: Options): SchemaOptions {
  return {
    format: {
      ...(format === undefined ? {} : { format }),
      ...(compress === undefined ? {} : { compression: compress }),
    },
    replace: replace === true,
    ...(eraseDay === undefined ? {} : { eraseDay }),
    ...(erase.length === 0
      ? {}
      : { users: { ids: erase, column: clientUser === true ? 'client_user_id' : 'user_id' } }),
  };
}

function wantedParts({ only, load, upgrade, erase, eraseDay }: Options): readonly Part[] {
  if (only !== undefined) return only;
  if (upgrade === true) return ['upgrade', 'views'];
  if (erase.length > 0 || eraseDay !== undefined) return ['erase'];
  return load === true ? ['load'] : ['tables', 'views', 'load'];
}

function readable<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof RangeError) throw usageError(`--from: ${messageOf(error)}`, { cause: error });
    throw error;
  }
}

function render(
  schemas: readonly TableSchema[],
  pulls: readonly PullsErasure[],
  parts: readonly Part[],
  dialect: DialectName,
): string {
  const { preamble }: Dialect = DIALECTS[dialect];
  const pick: Readonly<Record<Part, () => readonly (string | null)[]>> = {
    tables: () =>
      schemas.flatMap(({ createTable, createIndexes, describe }) => [createTable, createIndexes, describe]),
    // Nested tables first: their views read the view of the parent.
    upgrade: () => schemas.map(({ upgrade }) => upgrade).toReversed(),
    views: () => schemas.map(({ createView }) => createView),
    load: () => schemas.map(({ load }) => load),
    vanished: () => vanishedBy(schemas, dialect),
    erase: () => {
      const others = schemas.filter(({ table }) => table !== 'events');
      const events = schemas.filter(({ table }) => table === 'events');
      return [
        ...others.map(({ erase }) => erase),
        ...byEvent(others, dialect),
        ...pulls.flatMap(({ createTable, erase }) => [createTable, erase]),
        ...events.map(({ erase }) => erase),
      ];
    },
  };
  const statements = PARTS.filter((part) => parts.includes(part))
    .flatMap((part) => pick[part]())
    .filter((statement) => statement !== null);
  const isMade = parts.some((part) => part !== 'erase');
  return [...(preamble !== undefined && isMade ? [preamble] : []), ...statements].join('\n\n');
}

/** Statements that remove what has vanished from these tables. */
function vanishedBy(schemas: readonly TableSchema[], dialect: DialectName): string[] {
  const removals = schemas.flatMap(({ vanished }) => vanished ?? []);
  return removals.length === 0 ? [] : [pullsTable(dialect), ...removals];
}

function pullsTable(dialect: DialectName): string {
  return schemaOf({ definition: WHOLE_PULLS, document: WHOLE_PULLS }, dialect).createTable;
}

/** Statements that load the folder of a backfill, and then remove what its whole pulls do not have. */
function loadsOfBackfill(
  { tables, pulls }: Awaited<ReturnType<typeof filesOfBackfill>>,
  entries: readonly TableEntry[],
  dialect: DialectName,
  from: string,
): string[] {
  const schemas = entries
    .filter(({ definition }) => tables.has(definition.name))
    .map((entry) => schemaOf(entry, dialect, `${from.replace(/\/$/, '')}/${entry.definition.name}.ndjson`));
  const own = pulls.filter((pull) => schemas.some(({ table }) => table === pull.table));
  const ofPulls = schemas.filter(({ table }) => own.some((pull) => pull.table === table));
  const noted = own.length === 0 ? [] : [pullsTable(dialect), notePulls(own, DIALECTS[dialect])];
  return [...schemas.map(({ load }) => load), ...noted, ...ofPulls.flatMap(({ vanished }) => vanished ?? [])];
}

function byEvent(schemas: readonly TableSchema[], dialect: DialectName): string[] {
  const statements = schemas.flatMap(({ eraseByEvent }) => eraseByEvent ?? []);
  const events = TABLES.get('events');
  if (events === undefined || statements.length === 0) return statements;
  return [schemaOf(events, dialect).createTable, ...statements];
}

function dayText(text: string): string {
  if (isCalendarDay(text)) return text;
  throw new RangeError('must be a day, such as 2026-11-21');
}

function partsOf(text: string): Part[] {
  return text.split(',').map((name) => {
    const part = PARTS.find((one) => one === name);
    if (part === undefined) throw usageError(`--only ${name}: the parts are ${PARTS.join(', ')}`);
    return part;
  });
}
