import type { RowBatch } from './row-batch.ts';

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
