import { type Column, type EventOrigin, integer, type Nesting, type TableDefinition } from '../definition.ts';

export type Rows = Omit<TableDefinition, 'events' | 'nested'>;

/** A table with the beginnings of its event types, and nested tables that are made of the same events. */
interface TableSpec extends Rows {
  /** Types of the events whose `data` is the document. Without it, only answers of the service are documents. */
  readonly events?: readonly string[];
  /** `data` is an array, and each item is a document. */
  readonly each?: 'array';
  readonly nested?: readonly Nesting[];
}

export function table({ events: types, each, nested, ...rows }: TableSpec): TableDefinition {
  if (types === undefined) return { ...rows, ...(nested === undefined ? {} : { nested }) };
  const events: EventOrigin = { types, member: 'data', ...(each === undefined ? {} : { each }) };
  if (nested === undefined) return { ...rows, events };
  return { ...rows, events, nested: nested.map((one) => ({ ...one, table: { ...one.table, events } })) };
}

/** Rows of the items of the array at a path of the document. */
export function rowsIn(at: string, rows: Rows): Nesting {
  return { at, each: 'array', table: rows };
}

/** Rows of the members of the object at a path of the document. */
export function rowsByName(at: string, rows: Rows): Nesting {
  return { at, each: 'map', table: rows };
}

/** Columns of an object inside the document: `avg` of `heart_rate` is `heart_rate_avg`, read from `heart_rate.avg`. */
export function inside(at: string, columns: readonly Column[], prefix = `${at}_`): Column[] {
  return columns.map(({ from, ...column }) => {
    if (typeof from !== 'string') throw new TypeError(`${column.name} is not read from the document`);
    return { ...column, name: `${prefix}${column.name}`, from: `${at}.${from}` };
  });
}

/** The value that the row around has in its column of the same name. */
export function inherited(column: Column): Column {
  return { ...column, from: { parent: column.name } };
}

/** Position of a row among those of its document; part of its key. */
export function position(name: string): Column {
  return integer(name, 'position, from 0', { from: { of: 'position' }, required: true });
}
