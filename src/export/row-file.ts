import type { EncodedGroup } from './parquet/row-group.ts';
import type { GatheredValues } from './parquet/column-values.ts';

/** A file of rows that is being written, under a temporary name. One piece is written while rows of the next are gathered. */
export abstract class RowFile {
  rows = 0;
  /** Bytes of rows that are held in memory. */
  held = 0;
  /** Bytes of rows that are being written. */
  writing = 0;
  #written = Promise.resolve();

  /** Takes rows; their buffers belong to the file from now on. */
  abstract add(batch: RowBatch): Promise<void>;
  /** Begins to write the rows in memory, after the last piece. */
  abstract relieve(): Promise<void>;
  /** Makes the file complete and durable, and closes it. Returns null when there were no rows, and so no file. */
  abstract finish(): Promise<{ bytes: number; sha256: string } | null>;
  protected abstract remove(): Promise<void>;

  /** Waits until nothing is being written. @throws its error */
  async settled(): Promise<void> {
    await this.#written;
  }

  async abandon(): Promise<void> {
    await this.#written.catch(() => undefined);
    await this.remove();
  }

  /** Begins to write a piece, after the last one. */
  protected async begin(bytes: number, write: () => Promise<void>): Promise<void> {
    await this.#written;
    this.writing = bytes;
    this.#written = write().finally(() => (this.writing = 0));
    // The next call throws it.
    this.#written.catch(() => undefined);
  }
}

/** Rows of one table and partition for a file. */
export interface RowBatch {
  readonly table: string;
  /** Folder of the partition, such as `dt=2026-11-21`; empty for none. */
  readonly folder: string;
  readonly rows: number;
  readonly content: LinesOfRows | ColumnsOfRows;
}

/** Rows as NDJSON; `packed` when they are compressed. */
export interface LinesOfRows {
  readonly lines: Uint8Array<ArrayBuffer>;
  readonly packed: boolean;
}

/** Rows as columns: a row group, or too few for one, which are joined with others. */
export type ColumnsOfRows =
  | { readonly group: EncodedGroup }
  | {
      readonly columns: readonly GatheredValues[];
      /** Bytes of their values as JSON. */
      readonly held: number;
    };
