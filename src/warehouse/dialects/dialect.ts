import type { Column, ColumnType, TableDefinition } from '../definition.ts';
import { columnsOf } from '../definition.ts';

/** How a warehouse is talked to. */
export interface Dialect {
  /** Shown in headings. */
  readonly title: string;
  readonly types: Readonly<Record<ColumnType, string>>;
  /** A name that may be a reserved word, and is not to lose its case. */
  quote(name: string): string;
  /** Where the rows are when nothing is said: a file or an address to be replaced. */
  location(table: string): string;
  /** The statements that load rows; to be run in order. */
  load(table: TableDefinition, from: string): string;
}

export function doubleQuoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text in SQL. Backslashes are for the caller to mind. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The columns, each made by `make`, one a line. */
export function listColumns(table: TableDefinition, make: (column: Column) => string): string {
  return columnsOf(table)
    .map((column) => `  ${make(column)}`)
    .join(',\n');
}
