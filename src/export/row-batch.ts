import type { EncodedGroup } from '../parquet/row-group.ts';
import type { GatheredValues } from '../parquet/column-values.ts';

/** Rows of one table and partition on their way to the file that takes them. */
export interface RowBatch {
  readonly table: string;
  /** Of the partition below the table's, such as `dt=2026-11-21`; empty for none. */
  readonly folder: string;
  readonly rows: number;
  readonly content: LinesOfRows | ColumnsOfRows;
}

/** As NDJSON: `packed` when they are compressed already. */
export interface LinesOfRows {
  readonly lines: Uint8Array<ArrayBuffer>;
  readonly packed: boolean;
}

/** As columns: a row group of their own, or too few for one, which wait for others. */
export type ColumnsOfRows =
  | { readonly group: EncodedGroup }
  | {
      readonly columns: readonly GatheredValues[];
      /** Bytes of their values as JSON. */
      readonly held: number;
    };
