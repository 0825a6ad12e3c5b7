import { type Column, columnsOf, type TableDefinition } from '../definition.ts';
import { type Dialect, listColumns, script, tableName } from './dialects/dialect.ts';
import { DIALECTS, type DialectName } from './dialects/registry.ts';
import { dayOf, formatOf, type Source, type SourceFormat } from './dialects/source.ts';
import { eventColumnsOf } from './identity.ts';
import { createView, latestOf } from './latest.ts';
import { deleteDay } from './replace.ts';
import { createPulls, PULLS } from '../database/ledger.ts';
import { removeVanished, WHOLE_PULLS } from './vanished.ts';
import { EVENTS } from '../definitions/events.ts';
import type { TableEntry } from '../tables.ts';

/** Statements for a table, in the order in which they are run. */
export interface TableSchema {
  readonly table: string;
  /** The table, with descriptions where the dialect has them in this statement. */
  readonly createTable: string;
  /** Its indexes; null where the dialect has none. */
  readonly createIndexes: string | null;
  /** Describes the table and its columns; null where `createTable` does. */
  readonly describe: string | null;
  /** The view `<table>_latest` with the newest version of each row; null for a table without a key. */
  readonly createView: string | null;
  /** Loads rows; repeating it changes nothing. */
  readonly load: string;
  /** Removes rows that have vanished at the service, by the table of whole pulls; null for a table that no pull is of. */
  readonly vanished: string | null;
  /**
   * Makes the table, or adds new columns to one of an earlier version; null where the dialect cannot add a column only if it is
   * missing. It drops the view, which has to be made again.
   */
  readonly upgrade: string | null;
  /** Removes the rows of users or of a day; null for a table without users. */
  readonly erase: string | null;
  /**
   * Removes rows of the users' events whose documents name another user; null for a table without events. It has to be run before
   * the rows of `events` are removed.
   */
  readonly eraseByEvent: string | null;
}

export interface SchemaOptions {
  /** Format of files whose names do not say it. */
  readonly format?: Partial<SourceFormat>;
  /** The files have all rows of the day in the folder's name, and replace the table's. */
  readonly replace?: boolean;
  /** Rows that came in on this day, UTC, are to be removed, instead of those of users. */
  readonly eraseDay?: string;
  /** Users to be erased, and the column of their ids. */
  readonly users?: { readonly ids: readonly string[]; readonly column: 'user_id' | 'client_user_id' };
}

/**
 * @param from file, folder or address of the rows; the dialect's placeholder when it is left out
 * @throws RangeError when the dialect does not read such files, or `replace` is set and the place is not the folder of one day
 */
export function schemaOf(
  entry: TableEntry,
  dialectName: DialectName | Dialect,
  from?: string,
  options: SchemaOptions = {},
): TableSchema {
  const dialect: Dialect = typeof dialectName === 'string' ? DIALECTS[dialectName] : dialectName;
  const { definition, document } = entry;
  const place = from ?? dialect.location(definition.name);
  return {
    table: definition.name,
    createTable: createTable(definition, dialect),
    createIndexes: createIndexes(definition, dialect),
    describe: describe(definition, dialect),
    createView: createView(entry, dialect),
    load: dialect.load(definition, document, sourceOf(place, dialect, options)),
    vanished: removeVanished(entry, dialect),
    upgrade: upgrade(definition, dialect),
    erase: eraseFrom(definition, dialect, options),
    eraseByEvent: eraseByEvent(definition, dialect, options),
  };
}

function sourceOf(place: string, { reads = 'parquet' }: Dialect, { format, replace }: SchemaOptions): Source {
  const day = replace === true ? dayOf(place) : null;
  if (replace === true && day === null)
    throw new RangeError(`${place} is not the folder of one day, such as …/dt=2026-11-21/`);
  return { place, format: reads, compression: 'gzip', ...formatOf(place), ...format, day };
}

function createTable(definition: TableDefinition, dialect: Dialect): string {
  const { storage, describedBy } = dialect;
  const columns = listColumns(definition, (_, column) =>
    columnIn(column, dialect, column.required === true ? ' NOT NULL' : ''),
  );
  const description = plainText(definition.description);
  const described = describedBy === undefined ? '' : `\n${describedBy.table(dialect.literal(description))}`;
  const made = `CREATE TABLE IF NOT EXISTS ${tableName(dialect, definition.name)} (\n${columns}\n)${storage(definition)}${described};`;
  return `-- ${description}\n${made}`;
}

/** A column with its type and, where the dialect has it there, its description. */
function columnIn(column: Column, dialect: Dialect, required = ''): string {
  const { quote, types, typeOf, describedBy, literal } = dialect;
  const type = typeOf?.(column) ?? types[column.type];
  const described = describedBy === undefined ? '' : ` ${describedBy.column(literal(descriptionOf(column)))}`;
  return `${quote(column.name)} ${type}${required}${described}`;
}

/** What a column has, with its unit. */
export function descriptionOf({ description, unit }: Column): string {
  return plainText(unit === undefined ? description : `${description} [${unit}]`);
}

function describe(definition: TableDefinition, dialect: Dialect): string | null {
  if (dialect.describedBy !== undefined) return null;
  const { quote, literal } = dialect;
  const table = tableName(dialect, definition.name);
  return script([
    `COMMENT ON TABLE ${table} IS ${literal(plainText(definition.description))}`,
    ...columnsOf(definition).map(
      (column) => `COMMENT ON COLUMN ${table}.${quote(column.name)} IS ${literal(descriptionOf(column))}`,
    ),
  ]);
}

/** Statements that add missing columns; null where the dialect has none that can be repeated. */
export function addColumns(definition: TableDefinition, dialect: Dialect): string[] | null {
  if (dialect.addsMissing !== true) return null;
  // Without NOT NULL: existing rows have no value.
  return columnsOf(definition).map(
    (column) =>
      `ALTER TABLE ${tableName(dialect, definition.name)} ADD COLUMN IF NOT EXISTS ${columnIn(column, dialect)}`,
  );
}

function upgrade(definition: TableDefinition, dialect: Dialect): string | null {
  const added = addColumns(definition, dialect);
  if (added === null) return null;
  // Most dialects refuse to change the columns of a view.
  const dropped = `DROP VIEW IF EXISTS ${tableName(dialect, latestOf(definition.name))}`;
  const indexes = createIndexes(definition, dialect);
  return [
    createTable(definition, dialect),
    script([dropped, ...added]),
    ...[indexes, describe(definition, dialect)].filter((statements) => statements !== null),
  ].join('\n');
}

function createIndexes(definition: TableDefinition, dialect: Dialect): string | null {
  const made = dialect.indexes?.(definition, tableName(dialect, definition.name)) ?? [];
  return made.length === 0 ? null : made.map((statement) => `${statement};`).join('\n');
}

/** Without semicolons: many clients end a statement there, also in a comment. */
function plainText(text: string): string {
  return text.replaceAll(';', ',').replaceAll(/\s+/g, ' ');
}

function eraseFrom(definition: TableDefinition, dialect: Dialect, options: SchemaOptions): string | null {
  const { users, eraseDay } = options;
  if (eraseDay !== undefined)
    return eventColumnsOf(definition) === null ? null : `${deleteDay(definition, eraseDay, dialect)};`;
  const { column } = users ?? PLACEHOLDER_USER;
  if (!columnsOf(definition).some(({ name }) => name === column)) return null;
  return `DELETE FROM ${dialect.quote(definition.name)} WHERE ${isOneOf(users, dialect)};`;
}

/** Removes users from a table of pulls, which is made if it is missing: a warehouse need not have it. */
export interface PullsErasure {
  readonly table: string;
  readonly createTable: string;
  readonly erase: string;
}

/**
 * Removes users from the tables of pulls: that of `notePulls`, and those of loads. By a client user they are found in `events`, before
 * its rows are removed.
 */
export function erasePulls(dialectName: DialectName, { users, eraseDay }: SchemaOptions): PullsErasure[] {
  if (eraseDay !== undefined) return [];
  const dialect: Dialect = DIALECTS[dialectName];
  const { quote, literal } = dialect;
  const user = quote('user_id');
  const is =
    users?.column === 'client_user_id'
      ? `${user} IN (SELECT ${user} FROM ${quote(EVENTS.name)} WHERE ${isOneOf(users, dialect)})`
      : `${user} IN (${(users ?? PLACEHOLDER_USER).ids.map(literal).join(', ')})`;
  // Loads fill these databases only.
  const isLoaded = dialectName === 'postgres' || dialectName === 'duckdb';
  const ofLoads = isLoaded && { [PULLS]: createPulls(quote(PULLS)) };
  const made = { [WHOLE_PULLS.name]: createTable(WHOLE_PULLS, dialect), ...ofLoads };
  return Object.entries(made).map(([table, create]) => {
    return { table, createTable: create, erase: `DELETE FROM ${quote(table)} WHERE ${is};` };
  });
}

/** The event and its document can name different users. */
function eraseByEvent(
  definition: TableDefinition,
  dialect: Dialect,
  { users, eraseDay }: SchemaOptions,
): string | null {
  const event = eventColumnsOf(definition);
  if (eraseDay !== undefined || event === null || definition === EVENTS) return null;
  const { quote, hashed = same } = dialect;
  const isOfEvents = [...new Set([hashed, same])].map((by) => {
    const ids = `SELECT ${by(quote('id'))} FROM ${quote(EVENTS.name)} WHERE ${isOneOf(users, dialect)}`;
    return `${by(quote(event.id))} IN (${ids})`;
  });
  return `DELETE FROM ${quote(definition.name)} WHERE ${isOfEvents.join(' AND ')};`;
}

const PLACEHOLDER_USER = { ids: ['USER_ID'], column: 'user_id' } as const;

/** Compares hashes too where indexes have them: they find the rows, and the texts decide. */
function isOneOf(
  { ids, column }: NonNullable<SchemaOptions['users']> = PLACEHOLDER_USER,
  { quote, literal, hashed = same }: Dialect,
): string {
  return [...new Set([hashed, same])]
    .map((by) => `${by(quote(column))} IN (${ids.map((id) => by(literal(id))).join(', ')})`)
    .join(' AND ');
}

function same(text: string): string {
  return text;
}
