import { type Column, columnsOf, type TableDefinition } from '../definition.ts';
import { type Dialect, script, tableName } from './dialects/dialect.ts';
import { DIALECTS, type DialectName } from './dialects/registry.ts';
import { dayOf, formatOf, type Source, type SourceFormat } from './dialects/source.ts';
import { eventColumnsOf } from './identity.ts';
import { createView, latestOf } from './latest.ts';
import { deleteDay } from './replace.ts';
import { EVENTS } from '../definitions/events.ts';
import type { TableEntry } from '../tables.ts';

/** Everything a warehouse needs for a table, in the order it is to be run. */
export interface TableSchema {
  readonly table: string;
  /** The table with its columns, each with a comment that says what it is. */
  readonly createTable: string;
  /** Statements for its indexes; null where the dialect has none. */
  readonly createIndexes: string | null;
  /** `<table>_latest`, with the newest version of each row; null for a table whose rows have nothing to be known by. */
  readonly createView: string | null;
  /** Brings rows in; run again, it changes nothing. */
  readonly load: string;
  /**
   * Makes the table, or completes one that an earlier version has made; null where the dialect cannot add a column that may
   * be there. The view of its newest rows goes, and has to be made again.
   */
  readonly upgrade: string | null;
  /** Removes the rows of users or of a day; null for a table that says nothing of users. */
  readonly erase: string | null;
  /**
   * Removes the rows of events of these users that are another's by their document; null where there are none. The table
   * `events` has to have its rows still.
   */
  readonly eraseByEvent: string | null;
}

export interface SchemaOptions {
  /** What the files are, where their names do not tell. */
  readonly format?: Partial<SourceFormat>;
  /** The place has all rows of the day that its name ends with: other rows of the day go. */
  readonly replace?: boolean;
  /** Whose rows are to be removed when it is not users: those that came in on this day, UTC. */
  readonly eraseDay?: string;
  /** Who is to be erased, and which id of theirs is named. */
  readonly users?: { readonly ids: readonly string[]; readonly column: 'user_id' | 'client_user_id' };
}

/**
 * @param from file, folder or address of the rows; the dialect's placeholder when it is left out
 * @throws RangeError when the dialect does not read such files, or the place is of no single day that could be replaced
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
    createView: createView(entry, dialect),
    load: dialect.load(definition, document, sourceOf(place, dialect, options)),
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
  const { quote, storage } = dialect;
  const columns = columnsOf(definition);
  const lines = columns.map((column, i) => {
    const { name, required, description, unit } = column;
    const comma = i === columns.length - 1 ? '' : ',';
    const what = unit === undefined ? description : `${description} [${unit}]`;
    const typed = `${typeIn(definition, column, dialect)}${required === true ? ' NOT NULL' : ''}`;
    return `  ${quote(name)} ${typed}${comma} -- ${comment(what)}`;
  });
  const made = `CREATE TABLE IF NOT EXISTS ${tableName(dialect, definition.name)} (\n${lines.join('\n')}\n)${storage(definition)};`;
  return `-- ${comment(definition.description)}\n${made}`;
}

function typeIn(definition: TableDefinition, column: Column, { types, typeOf }: Dialect): string {
  return typeOf?.(column, definition) ?? types[column.type];
}

/** Statements that add each column that is not there; null where the dialect has none that may be repeated. */
export function addColumns(definition: TableDefinition, dialect: Dialect): string[] | null {
  const { quote, addsMissing } = dialect;
  if (addsMissing !== true) return null;
  // Rows that are there have no value in it, so none can be demanded.
  return columnsOf(definition).map(
    (column) =>
      `ALTER TABLE ${tableName(dialect, definition.name)} ADD COLUMN IF NOT EXISTS ${quote(column.name)} ${typeIn(definition, column, dialect)}`,
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
    ...(indexes === null ? [] : [indexes]),
  ].join('\n');
}

function createIndexes(definition: TableDefinition, dialect: Dialect): string | null {
  const made = dialect.indexes?.(definition, tableName(dialect, definition.name)) ?? [];
  return made.length === 0 ? null : made.map((statement) => `${statement};`).join('\n');
}

/** Many clients end a statement at every semicolon, also at one in a comment. */
function comment(text: string): string {
  return text.replaceAll(';', ',').replaceAll(/\s+/g, ' ');
}

function eraseFrom(definition: TableDefinition, dialect: Dialect, options: SchemaOptions): string | null {
  const { users, eraseDay } = options;
  if (eraseDay !== undefined)
    return eventColumnsOf(definition) === null ? null : `${deleteDay(definition, eraseDay, dialect)};`;
  const { column } = users ?? SOMEBODY;
  if (!columnsOf(definition).some(({ name }) => name === column)) return null;
  return `DELETE FROM ${dialect.quote(definition.name)} WHERE ${isOneOf(users, dialect)};`;
}

/** An event can say that it is of one user, and its document that it is of another. */
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

const SOMEBODY = { ids: ['USER_ID'], column: 'user_id' } as const;

/** A hash, where indexes have one, finds the rows; only the text itself says that they are the right ones. */
function isOneOf(
  { ids, column }: NonNullable<SchemaOptions['users']> = SOMEBODY,
  { quote, literal, hashed = same }: Dialect,
): string {
  return [...new Set([hashed, same])]
    .map((by) => `${by(quote(column))} IN (${ids.map((id) => by(literal(id))).join(', ')})`)
    .join(' AND ');
}

function same(text: string): string {
  return text;
}
