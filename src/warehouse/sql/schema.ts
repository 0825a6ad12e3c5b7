import { columnsOf, type TableDefinition } from '../definition.ts';
import type { Dialect } from './dialects/dialect.ts';
import { DIALECTS, type DialectName } from './dialects/registry.ts';
import { dayOf, formatOf, type Source, type SourceFormat } from './dialects/source.ts';
import { eventColumnsOf } from './identity.ts';
import { createView } from './latest.ts';
import { deleteDay } from './replace.ts';
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
  /** Removes the rows of users or of a day; null for a table that says nothing of users. */
  readonly erase: string | null;
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
  dialectName: DialectName,
  from?: string,
  options: SchemaOptions = {},
): TableSchema {
  const dialect: Dialect = DIALECTS[dialectName];
  const { definition, document } = entry;
  const place = from ?? dialect.location(definition.name);
  return {
    table: definition.name,
    createTable: createTable(definition, dialect),
    createIndexes: createIndexes(definition, dialect),
    createView: createView(entry, dialect),
    load: dialect.load(definition, document, sourceOf(place, dialect, options)),
    erase: eraseFrom(definition, dialect, options),
  };
}

function sourceOf(place: string, { reads }: Dialect, { format, replace }: SchemaOptions): Source {
  const day = replace === true ? dayOf(place) : null;
  if (replace === true && day === null)
    throw new RangeError(`${place} is not the folder of one day, such as …/dt=2026-11-21/`);
  return { place, ...reads, ...formatOf(place), ...format, day };
}

function createTable(definition: TableDefinition, dialect: Dialect): string {
  const { quote, types, typeOf, storage } = dialect;
  const columns = columnsOf(definition);
  const lines = columns.map((column, i) => {
    const { name, type, required, description, unit } = column;
    const comma = i === columns.length - 1 ? '' : ',';
    const what = unit === undefined ? description : `${description} [${unit}]`;
    const typed = `${typeOf?.(column, definition) ?? types[type]}${required === true ? ' NOT NULL' : ''}`;
    return `  ${quote(name)} ${typed}${comma} -- ${comment(what)}`;
  });
  const made = `CREATE TABLE IF NOT EXISTS ${quote(definition.name)} (\n${lines.join('\n')}\n)${storage(definition)};`;
  return `-- ${comment(definition.description)}\n${made}`;
}

function createIndexes(definition: TableDefinition, { indexes }: Dialect): string | null {
  const made = indexes?.(definition) ?? [];
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
  const { quote, literal } = dialect;
  const { ids, column } = users ?? { ids: ['USER_ID'], column: 'user_id' };
  if (!columnsOf(definition).some(({ name }) => name === column)) return null;
  const wanted = ids.map(literal).join(', ');
  return `DELETE FROM ${quote(definition.name)} WHERE ${quote(column)} IN (${wanted});`;
}
