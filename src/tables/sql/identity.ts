import { columnsOf, hasRowId, LOADED_AT, ROW_ID, type TableDefinition } from '../definition.ts';

/** The columns that say which event a row was made of. */
export interface EventColumns {
  readonly id: string;
  readonly type: string;
  readonly user: string;
  readonly received: string;
}

/** Null for a table that no event makes rows of. Rows of answers leave them null. */
export function eventColumnsOf(table: TableDefinition): EventColumns | null {
  const names = new Set(columnsOf(table).map(({ name }) => name));
  if (names.has('_event_id'))
    return { id: '_event_id', type: '_event_type', user: 'user_id', received: '_received_at' };
  // A row of this table is the event itself.
  if (table.name === 'events')
    return { id: 'id', type: 'event_type', user: 'user_id', received: 'received_at' };
  return null;
}

/** The time by which a table is laid out in days: when a row came in. */
export function arrivalOf(table: TableDefinition): string {
  return eventColumnsOf(table)?.received ?? LOADED_AT.name;
}

/** Columns that tell the rows of one event apart, or of one document; empty when the table has none. */
export function rowKeyOf(table: TableDefinition): readonly string[] {
  const { key, columns } = table;
  // A position, the name in a map, or the count of rows that are alike.
  const positions = columns.filter(({ from }) => typeof from === 'object' && 'of' in from);
  return key.length === 0 ? [] : [...new Set([...keyOf(table), ...positions.map(({ name }) => name)])];
}

/** Columns whose values make a row one thing. */
export function keyOf(table: TableDefinition): readonly string[] {
  return hasRowId(table) ? [...table.key, ROW_ID.name] : table.key;
}

/** The version of the document that a row belongs to, by the document's own time; null where nothing says it. */
export function versionOf(table: TableDefinition, document: TableDefinition): string | null {
  const { newest } = document;
  if (newest === undefined) return null;
  if (table === document) return newest;
  return parentColumn(table, newest);
}

/** The column of a nested table that has a value of the row around it. */
export function parentColumn({ columns }: TableDefinition, parent: string): string | null {
  const found = columns.find(
    ({ from }) => typeof from === 'object' && 'parent' in from && from.parent === parent,
  );
  return found?.name ?? null;
}

/** More columns than these order rows no further: warehouses cluster by so many at most. */
const SORTED = 4;

/** Columns that rows are kept in order of: whose they are, then what they are known by. */
export function sortedBy(table: TableDefinition): readonly string[] {
  const user = columnsOf(table).filter(({ name }) => name === 'user_id');
  return [...new Set([...user.map(({ name }) => name), ...table.key])].slice(0, SORTED);
}
