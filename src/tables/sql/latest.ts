import { columnsOf, hasRowId, LOADED_AT, type Nesting, type TableDefinition } from '../definition.ts';
import { type Dialect, firstRows, rankOver, tableName } from './dialects/dialect.ts';
import type { TableEntry } from '../tables.ts';
import { keyOf, parentColumn } from './identity.ts';

export function latestOf(table: string): string {
  return `${table}_latest`;
}

/** The view of the newest version of each row; null for a table without a key. */
export function createView({ definition, document }: TableEntry, dialect: Dialect): string | null {
  const { name, key } = definition;
  if (key.length === 0) return null;
  // Rows inside a frame have no document with versions.
  const nesting =
    document.ownRows === false ? undefined : document.nested?.find(({ table }) => table === definition);
  const body = nesting === undefined ? newest(definition, dialect) : newestInside(document, nesting, dialect);
  return `CREATE OR REPLACE VIEW ${tableName(dialect, latestOf(name))} AS\n${body};`;
}

/** Columns that decide between versions of the same time, in order. */
const VERSION_ORDER = ['_received_at', LOADED_AT.name, '_event_id'];

function orderOf(definition: TableDefinition, ...first: readonly (string | undefined)[]): string[] {
  const has = new Set(columnsOf(definition).map(({ name }) => name));
  return [...first, ...VERSION_ORDER.filter((name) => has.has(name))].filter((name) => name !== undefined);
}

/** One row for each key: the newest by the document's own time, and then by when it came. */
function newest(definition: TableDefinition, dialect: Dialect): string {
  const { quote, together } = dialect;
  const order = orderOf(definition, definition.newest).map(quote);
  const rank = rankOver(keyOf(definition).map(quote), together === undefined ? order : [together(order)]);
  return firstRows(select(definition, dialect), rank, [
    `FROM ${tableName(dialect, definition.name)} AS rows_`,
  ]);
}

function select(table: TableDefinition, { quote }: Dialect): string {
  return `SELECT ${columnsOf(table)
    .map(({ name }) => quote(name))
    .join(', ')}`;
}

/**
 * The rows inside the newest version of each document, so that rows of an older version that had more are left out. The same
 * version loaded twice counts once. Rows inside a document with an unknown key are all there.
 */
function newestInside(document: TableDefinition, { table }: Nesting, dialect: Dialect): string {
  const { quote } = dialect;
  const versions = [...document.key, document.newest].flatMap((parent) => {
    const own = parent === undefined ? null : parentColumn(table, parent);
    return own === null || parent === undefined ? [] : [[own, parent] as const];
  });
  const same = [...versions, ...orderOf(table).map((name) => [name, name] as const)].map(([own, parent]) => {
    const [left, right] = [`rows_.${quote(own)}`, `latest_.${quote(parent)}`];
    return document.key.includes(parent)
      ? `${left} = ${right}`
      : `(${left} = ${right} OR (${left} IS NULL AND ${right} IS NULL))`;
  });
  const parentKey = versions.filter(([, parent]) => document.key.includes(parent));
  const alone = hasRowId(document) ? parentKey.map(([own]) => `rows_.${quote(own)} IS NULL`) : [];
  const found = parentKey.map(([, parent]) => `latest_.${quote(parent)} IS NOT NULL`);
  const inRows = (name: string): string => `rows_.${quote(name)}`;
  const rank = rankOver(keyOf(table).map(inRows), orderOf(table).map(inRows));
  return firstRows(select(table, dialect), rank, [
    `FROM ${tableName(dialect, table.name)} AS rows_`,
    `${alone.length === 0 ? '' : 'LEFT '}JOIN ${tableName(dialect, latestOf(document.name))} AS latest_`,
    `  ON ${same.join('\n    AND ')}`,
    ...(alone.length === 0 ? [] : [`WHERE (${found.join(' AND ')}) OR ${alone.join(' OR ')}`]),
  ]);
}
