import type { Command } from 'commander';
import { changesAfter, type Changes } from '../export/new-files.ts';
import type { Dialect } from '../tables/sql/dialects/dialect.ts';
import { DIALECTS, type DialectName } from '../tables/sql/dialects/registry.ts';
import { dayOf } from '../tables/sql/dialects/source.ts';
import { schemaOf, type SchemaOptions, type TableSchema } from '../tables/sql/schema.ts';
import { TABLES, type TableEntry } from '../tables/tables.ts';
import { messageOf } from '../core/errors.ts';
import { tellLost } from './file-reports.ts';
import { inferCommand } from './infer.ts';
import { printSeen, schemaDiffCommand } from './schema-seen.ts';
import { print, usageError, type Io } from './io.ts';
import { commandOf, oneOf, type OptionsOf, readBy, repeated, special, wholeNumber } from './options.ts';
import { TABLES_OPTION, tablesOf } from './tables-option.ts';
import { KEY_OPTIONS } from './key-options.ts';

const PARTS = ['tables', 'upgrade', 'views', 'load', 'erase'] as const;

const HELP = `
Examples:
  millrace schema                                        (event types that were seen)
  millrace schema daily.data.meal. --json                (their fields, kinds of values, first and last seen)
  millrace schema diff --since 2026-11-21
  millrace schema --dialect duckdb --only tables,views | duckdb health.db
  millrace schema --dialect duckdb --load --export ./export/meals --after 6 | duckdb health.db
  millrace schema meals --dialect postgres --load --from ./export/meals/meals/ | psql
  millrace schema meals --dialect redshift --load --replace --from s3://acme/meals/meals/dt=2026-11-21/ | psql
  millrace schema --dialect postgres --upgrade | psql
  millrace schema --dialect bigquery --erase 6b0e9a52-0000-4000-8000-0000000000aa

With --dialect prints SQL: the tables for the rows of \`millrace export\`, \`ndjson\` and \`backfill\`, partitioned and sorted as the warehouse
can; views of the newest version of each row (<table>_latest); and the statements that load rows. The view of a nested table
needs the view of its parent table. Without a table it prints all of them; without --from a placeholder of the location.

--from names a file, a folder of files, or an address that the warehouse reads. Names of files say what they are; for a folder
say --format and --compress as to \`millrace export\` (parquet; for PostgreSQL, which reads none, ndjson and gzip).

--export names a folder of \`millrace export\` on this machine: the loads of what is new in it since --after STEP, each changed day
in place of what the table has of it. With --from they name the place where the warehouse finds a copy of that folder.

A load replaces the rows of the same events, so a load that is repeated or was interrupted changes nothing. With --replace it
also removes the other rows of that day: what an erasure took out of the export leaves the table. Use it for tables that are
loaded from one export only.

--upgrade completes tables that an earlier version has made: it adds the columns that are missing and makes the views anew.
Redshift and Databricks have no statement for that which may be repeated.

--erase removes the rows that say they are the user's, and then those of the user's events whose documents name somebody else:
these are found in the table events, which comes last, and is made where it is not there.`;

const OPTIONS = {
  '--dialect <dialect>': oneOf(Object.keys(DIALECTS) as DialectName[], 'the warehouse'),
  '--only <parts>': special<readonly Part[] | undefined>(`some of ${PARTS.join(',')}`, (option) =>
    option.argParser(partsOf),
  ),
  '--load': 'only the load statements',
  '--from <place>':
    'with --dialect where the rows of the table are: a file, a folder, an address that the warehouse can read; without it the archive to look at instead of the receiver',
  '--export <folder>': 'only the loads of what is new in this export',
  '--after <step>': readBy(wholeNumber(), 'the last step of the export that was loaded', '0'),
  '--format <format>': oneOf(['parquet', 'ndjson'], 'what a folder holds'),
  '--compress <how>': oneOf(['gzip', 'zstd', 'none'], 'how its NDJSON is compressed'),
  '--replace': 'also remove other rows of the day whose folder --from names',
  '--upgrade': 'only statements that complete tables of an earlier version',
  '--erase <user>': repeated('only statements that remove the rows of this user; may be repeated'),
  '--erase-day <day>': readBy(dayText, 'only statements that remove the rows that came in on this day, UTC'),
  '--client-user': 'the ids to erase are client user ids',
  '--config <file>': 'the config of the receiver; its `tables` are added',
  '--json':
    'print one JSON document: [{table, createTable, createIndexes, createView, load, upgrade, erase, eraseByEvent}]',
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
      const { dialect, from, json } = options;
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
      if (options.export !== undefined) {
        const changes = await changesAfter(options.export, options.after);
        tellLost(changes, io);
        const loads = loadsOfExport(changes, entries, { ...options, export: options.export, dialect });
        for (const statements of loads) print(io, statements);
        return;
      }
      if (from !== undefined && table === undefined)
        throw usageError('--from needs a table: it is where its rows are');
      const parts = wantedParts(options);
      const schemas = readable(() =>
        entries.map((entry) => schemaOf(entry, dialect, from, detailsOf(options))),
      );
      if (json === true) print(io, JSON.stringify(schemas, null, 2));
      else print(io, render(schemas, parts, dialect));
    })
    .addCommand(inferCommand(io))
    .addCommand(schemaDiffCommand(io));
}

/** What says something of statements says which warehouse they are for. @throws MillraceError usage */
function refuseSql(name: string | undefined, options: Options): void {
  const { only, load, format, compress, replace, upgrade, erase, eraseDay, clientUser, tables } = options;
  const isSql = [only, load, format, compress, replace, upgrade, erase, eraseDay, clientUser, tables];
  if (isSql.every((given) => given === undefined) && options.export === undefined && !TABLES.has(name ?? ''))
    return;
  throw usageError(`--dialect is required: ${Object.keys(DIALECTS).join(', ')}`);
}

/** What brings a warehouse from a step of an export to its last, a text for each day, or for each file without days. */
function loadsOfExport(
  { terms: format, days, emptied, files }: Changes,
  entries: readonly TableEntry[],
  {
    dialect,
    export: folder,
    from = folder,
  }: Options & { readonly dialect: DialectName; readonly export: string },
): string[] {
  const schemaAt = (place: string, options: SchemaOptions): TableSchema | null => {
    const name = place.slice(0, place.indexOf('/'));
    const entry = entries.find(({ definition }) => definition.name === name);
    if (entry === undefined) return null;
    return schemaOf(entry, dialect, `${from.replace(/\/$/, '')}/${place}`, { format, ...options });
  };
  const single = files.filter(({ action, dt }) => action === 'load' && dt === null);
  return readable(() =>
    [
      ...days.filter(dayOf).map((day) => schemaAt(`${day}/`, { replace: true })?.load),
      ...single.map(({ file }) => schemaAt(file, {})?.load),
      ...emptied.filter(dayOf).map((day) => schemaAt(`${day}/`, { eraseDay: day.slice(-10) })?.erase),
    ].filter((statements) => typeof statements === 'string'),
  );
}

function detailsOf({ format, compress, replace, erase, eraseDay, clientUser }: Options): SchemaOptions {
  return {
    format: {
      ...(format === undefined ? {} : { format }),
      ...(compress === undefined ? {} : { compression: compress }),
    },
    replace: replace === true,
    ...(eraseDay === undefined ? {} : { eraseDay }),
    ...(erase === undefined
      ? {}
      : { users: { ids: erase, column: clientUser === true ? 'client_user_id' : 'user_id' } }),
  };
}

function wantedParts({ only, load, upgrade, erase, eraseDay }: Options): readonly Part[] {
  if (only !== undefined) return only;
  if (upgrade === true) return ['upgrade', 'views'];
  if (erase !== undefined || eraseDay !== undefined) return ['erase'];
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

function render(schemas: readonly TableSchema[], parts: readonly Part[], dialect: DialectName): string {
  const { preamble }: Dialect = DIALECTS[dialect];
  const pick: Readonly<Record<Part, () => readonly (string | null)[]>> = {
    tables: () => schemas.flatMap(({ createTable, createIndexes }) => [createTable, createIndexes]),
    // What is nested first: its view reads that of its document.
    upgrade: () => schemas.map(({ upgrade }) => upgrade).toReversed(),
    views: () => schemas.map(({ createView }) => createView),
    load: () => schemas.map(({ load }) => load),
    erase: () => {
      const [events, others] = [true, false].map((is) =>
        schemas.filter(({ table }) => (table === 'events') === is),
      );
      return [
        ...(others ?? []).map(({ erase }) => erase),
        // Who has not loaded events has none to go by, and no fault either.
        ...byEvent(others ?? [], dialect),
        ...(events ?? []).map(({ erase }) => erase),
      ];
    },
  };
  const statements = PARTS.filter((part) => parts.includes(part))
    .flatMap((part) => pick[part]())
    .filter((statement) => statement !== null);
  const isMade = parts.some((part) => part !== 'erase');
  return [...(preamble !== undefined && isMade ? [preamble] : []), ...statements].join('\n\n');
}

function byEvent(schemas: readonly TableSchema[], dialect: DialectName): string[] {
  const statements = schemas.flatMap(({ eraseByEvent }) => eraseByEvent ?? []);
  const events = TABLES.get('events');
  if (events === undefined || statements.length === 0) return statements;
  return [schemaOf(events, dialect).createTable, ...statements];
}

function dayText(text: string): string {
  if (/^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))) return text;
  throw new RangeError('must be a day, such as 2026-11-21');
}

function partsOf(text: string): Part[] {
  return text.split(',').map((name) => {
    const part = PARTS.find((one) => one === name);
    if (part === undefined) throw usageError(`--only ${name}: the parts are ${PARTS.join(', ')}`);
    return part;
  });
}
