/**
 * What a table is made of. Shaping, DDL, load statements and the reference are all derived from these.
 */
export type ColumnType = 'text' | 'integer' | 'decimal' | 'boolean' | 'date' | 'timestamp' | 'json';

/** Where a column's value comes from. */
export type Origin =
  /** A path into the document: member names joined with dots. */
  | string
  /** A column of the row that this row's document lies inside. */
  | { readonly parent: string }
  /** Position among its siblings, from 0. */
  | { readonly of: 'position' }
  /** The name it has in the map it lies in. */
  | { readonly of: 'key' };

export interface Column {
  /** snake_case; a unit is part of the name. */
  readonly name: string;
  readonly type: ColumnType;
  readonly from: Origin;
  /** Read when there is nothing at `from`: where older documents have it. */
  readonly older?: string;
  /** A row without it is rejected. */
  readonly required?: true;
  readonly description: string;
  readonly unit?: string;
}

/** Documents inside a document that become rows of their own. */
export interface Nesting {
  /** Path of the array, or of the object whose members are the rows. */
  readonly at: string;
  readonly each: 'array' | 'map';
  readonly table: TableDefinition;
}

export interface TableDefinition {
  readonly name: string;
  readonly description: string;
  /** Columns whose values make a row one thing; the newest row of the same values wins. Empty: every row stands. */
  readonly key: readonly string[];
  /** Column that tells which row is the newest. */
  readonly newest?: string;
  readonly columns: readonly Column[];
  readonly nested?: readonly Nesting[];
}

/** Makes columns of a type, each read from the member of its name unless `from` says otherwise. */
function columnOf(type: ColumnType) {
  return (name: string, description: string, more: Partial<Column> = {}): Column => {
    return { name, type, from: name, description, ...more };
  };
}

export const text = columnOf('text');
export const integer = columnOf('integer');
export const decimal = columnOf('decimal');
export const boolean = columnOf('boolean');
export const date = columnOf('date');
export const timestamp = columnOf('timestamp');
export const json = columnOf('json');

/** Takes what a column did not; JSON object of the members, nested as in the document. */
export const EXTRA = json(
  'extra',
  'What has no column, as an object nested like the document: unknown fields, invalid values',
  { from: '' },
);

/** Set for all rows of a run by whoever runs it; nothing reads the clock. */
export const LOADED_AT = timestamp(
  '_loaded_at',
  'Time that was given for the run, if one was; decides between rows that no time of their own tells apart',
  { from: '' },
);

/** Every column of the table in order, the ones that all tables have included. */
export function columnsOf({ columns }: TableDefinition): readonly Column[] {
  return [...columns, EXTRA, LOADED_AT];
}
