/** How rows are compressed inside a file. */
export const COMPRESSIONS = ['gzip', 'zstd', 'none'] as const;

export type ExportCompression = (typeof COMPRESSIONS)[number];

/** On JSON two thirds faster than zlib's default, and 4 % larger. */
export const GZIP_LEVEL = 4;

/** A file of rows on its way out, under a temporary name. */
export interface RowFile {
  readonly rows: number;
  /** Bytes of rows that are held in memory. */
  readonly held: number;
  /** Bytes of rows that are being written. */
  readonly writing: number;
  /** Takes whole lines of NDJSON, valid until the promise resolves. */
  write(lines: Buffer, rows: number): Promise<void>;
  /** Begins to write what is held, once what was held before is written. */
  relieve(): Promise<void>;
  /** Waits for what is being written. */
  settled(): Promise<void>;
  /** Makes the file complete and durable, and closes it. */
  finish(): Promise<{ bytes: number; sha256: string }>;
  /** Removes it. */
  abandon(): Promise<void>;
}
