import type { EncodedGroup } from '../parquet/row-group.ts';
import type { GatheredValues } from '../parquet/column-values.ts';

/** A file of rows on its way out, under a temporary name. */
export interface RowFile {
  readonly rows: number;
  /** Bytes of rows that are held in memory. */
  readonly held: number;
  /** Bytes of rows that are being written. */
  readonly writing: number;
  /** Takes rows, in buffers that are the file's from now on. */
  add(batch: RowBatch): Promise<void>;
  /** Begins to write what is held, once what was held before is written. */
  relieve(): Promise<void>;
  /** Waits for what is being written. */
  settled(): Promise<void>;
  /** Makes the file complete and durable, and closes it; null when there were no rows, and so there is no file. */
  finish(): Promise<{ bytes: number; sha256: string } | null>;
  /** Removes it. */
  abandon(): Promise<void>;
}

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
