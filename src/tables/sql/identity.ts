import { allColumnsOf, columnsOf, hasRowId, LOADED_AT, ROW_ID, type TableDefinition } from '../definition.ts';

/**
 * Names of the columns that say which event a row was made of; null for a table that no event makes rows of. Rows of answers leave
 * them null.
 */
export function eventColumnsOf(table: TableDefinition) {
  const names = new Set(columnsOf(table).map(({ name }) => name));
  if (names.has('_event_id'))
    return { id: '_event_id', type: '_event_type', user: 'user_id', received: '_received_at' };
  // A row of this table is the event itself.
  if (table.name === 'events')
    return { id: 'id', type: 'event_type', user: 'user_id', received: 'received_at' };
  return null;
}

/** The column with the time when a row came in, by which a table is divided into days. */
export function arrivalOf(table: TableDefinition): string {
  return eventColumnsOf(table)?.received ?? LOADED_AT.name;
}

/** Columns that tell the rows of one event apart, or of one document; empty when the table has none. */
export function rowKeyOf(table: TableDefinition): readonly string[] {
  const { key, columns } = table;
  // A position, the name in a map, or a repetition.
  const positions = columns.filter(({ from }) => typeof from === 'object' && 'of' in from);
  return key.length === 0 ? [] : [...new Set([...keyOf(table), ...positions.map(({ name }) => name)])];
}

/** Columns that identify a row. */
export function keyOf(table: TableDefinition): readonly string[] {
  return hasRowId(table) ? [...table.key, ROW_ID.name] : table.key;
}

/** The column with the time of the document's version that a row belongs to; null where there is none. */
export function versionOf(table: TableDefinition, document: TableDefinition): string | null {
  const { newest } = document;
  if (newest === undefined) return null;
  if (table === document) return newest;
  return parentColumn(table, newest);
}

/** The column of a nested table that inherits a column of the row around; null for none. */
export function parentColumn({ columns }: TableDefinition, parent: string): string | null {
  const found = columns.find(
    ({ from }) => typeof from === 'object' && 'parent' in from && from.parent === parent,
  );
  return found?.name ?? null;
}

/** Columns that say when an item was: the first with a value counts. */
export interface Span {
  readonly first: readonly string[];
  /** When it ended. */
  readonly last: readonly string[];
  /** True for days, false for times. */
  readonly inDays: boolean;
  /** False where it is not known by which day of the item the service cuts a range. */
  readonly isExact: boolean;
}

const [STARTS, SESSION] = [['timestamp', 'start_time'], 'session_start'];
const [PERIOD, CYCLE_END] = ['period_start', ['cycle_end', 'period_end', 'period_start']];
/** By their first columns; of those that a table has the first counts. */
const SPANS: readonly Span[] = [
  { first: ['calendar_date'], last: ['calendar_date'], inDays: true, isExact: true },
  { first: STARTS, last: STARTS, inDays: false, isExact: true },
  { first: [SESSION], last: ['session_end', SESSION], inDays: false, isExact: false },
  { first: [PERIOD], last: CYCLE_END, inDays: true, isExact: false },
];

/** Null for a table whose rows do not say it: which of them are in a range is not known. */
export function spanOf(table: TableDefinition): Span | null {
  const [all, wanted] = [allColumnsOf, columnsOf].map((of) => new Set(of(table).map(({ name }) => name)));
  const span = SPANS.find(({ first }) => first.some((name) => all?.has(name)));
  const isWhole = span?.first.concat(span.last).every((name) => wanted?.has(name) === all?.has(name));
  return span === undefined || isWhole !== true ? null : span;
}

/** Warehouses cluster by at most so many columns. */
export const MOST_SORTED = 4;

/** Columns that rows are sorted by: the user, then the key. */
export function sortedBy(table: TableDefinition): readonly string[] {
  const user = columnsOf(table).filter(({ name }) => name === 'user_id');
  return [...new Set([...user.map(({ name }) => name), ...table.key])].slice(0, MOST_SORTED);
}
