import type { EncodedGroup } from './parquet/row-group.ts';
import type { GatheredValues } from './parquet/column-values.ts';

/**
 * A file of rows on its way out, under a temporary name. Rows are gathered to pieces; one piece is written while the next is
 * gathered.
 */
export abstract class RowFile {
  rows = 0;
  /** Bytes of rows that are held in memory. */
  held = 0;
  /** Bytes of rows that are being written. */
  writing = 0;
  #written = Promise.resolve();

  /** Takes rows, in buffers that are the file's from now on. */
  abstract add(batch: RowBatch): Promise<void>;
  /** Begins to write what is held, once what was held before is written. */
  abstract relieve(): Promise<void>;
  /** Makes the file complete and durable, and closes it; null when there were no rows, and so there is no file. */
  abstract finish(): Promise<{ bytes: number; sha256: string } | null>;
  /** Removes what there is of it. */
  protected abstract remove(): Promise<void>;

  /** Waits for what is being written. */
  async settled(): Promise<void> {
    await this.#written;
  }

  async abandon(): Promise<void> {
    await this.#written.catch(() => undefined);
    await this.remove();
  }

  /** Begins to write a piece, once the one before is written. */
  protected async begin(bytes: number, write: () => Promise<void>): Promise<void> {
    await this.#written;
    this.writing = bytes;
    this.#written = write().finally(() => (this.writing = 0));
    // Whoever comes next waits for it and is told.
    this.#written.catch(() => undefined);
  }
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
