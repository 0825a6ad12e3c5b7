import type { Column, Nesting, TableDefinition } from '../definition.ts';

/** A column as a definition file has it. */
export interface LearnedColumn extends Pick<Column, 'name' | 'type' | 'from' | 'required'> {
  /** Share of the rows that had a value when it was learned, from 0 to 1; what is no longer there is told by it. */
  readonly share?: number;
  readonly description?: string;
  readonly unit?: string;
  /** What was seen; a comment in the file. */
  readonly note?: string;
}

interface LearnedRows extends Pick<TableDefinition, 'name' | 'key'> {
  readonly description?: string;
  readonly columns: readonly LearnedColumn[];
  readonly note?: string;
}

export interface LearnedNesting extends LearnedRows, Pick<Nesting, 'at' | 'each'> {}

/** A table as a definition file has it. */
export interface LearnedTable extends LearnedRows {
  /** Beginnings of the event types it is made of. */
  readonly events: readonly string[];
  /** `data` is an array, and each item a row. */
  readonly each?: 'array';
  readonly newest?: string;
  readonly nested?: readonly LearnedNesting[];
}
