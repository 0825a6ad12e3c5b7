import { parquetMetadata } from 'hyparquet';

/**
 * What a line of a Delta table's log says, as the Delta transaction log protocol has it. Fields that are not known are kept
 * where a line is handed on, and otherwise ignored, as the protocol asks.
 */
export interface Protocol {
  readonly minReaderVersion: number;
  readonly minWriterVersion: number;
  readonly readerFeatures?: readonly string[];
  readonly writerFeatures?: readonly string[];
}

export interface MetaData {
  readonly id: string;
  readonly name?: string | null;
  readonly description?: string | null;
  readonly format: { readonly provider: string; readonly options: Readonly<Record<string, string>> };
  /** The schema as JSON text. */
  readonly schemaString: string;
  readonly partitionColumns: readonly string[];
  readonly configuration: Readonly<Record<string, string | null>>;
  /** Milliseconds since the epoch, as all times here. */
  readonly createdTime?: number | null;
}

/** A data file that belongs to the table. */
export interface AddFile {
  /** Percent-encoded, relative to the table, or absolute. */
  readonly path: string;
  readonly partitionValues: Readonly<Record<string, string | null>>;
  readonly size: number;
  readonly modificationTime: number;
  readonly dataChange: boolean;
  /** JSON text. */
  readonly stats?: string | null;
  readonly tags?: Readonly<Record<string, string | null>> | null;
  readonly deletionVector?: unknown;
}

/** A data file that no longer does. */
export interface RemoveFile {
  readonly path: string;
  readonly deletionTimestamp?: number | null;
  readonly dataChange: boolean;
  readonly extendedFileMetadata?: boolean | null;
  readonly partitionValues?: Readonly<Record<string, string | null>> | null;
  readonly size?: number | null;
}

/** How far an application has come that writes the table. */
export interface Txn {
  readonly appId: string;
  readonly version: number;
  readonly lastUpdated?: number | null;
}

/** One line of a commit; exactly one of these is there. */
export interface Action {
  readonly protocol?: Protocol;
  readonly metaData?: MetaData;
  readonly add?: AddFile;
  readonly remove?: RemoveFile;
  readonly txn?: Txn;
  readonly commitInfo?: Readonly<Record<string, unknown>>;
}

/** Says in the log who wrote a commit. */
export const ENGINE = 'millrace';

/** What a path of the log is called in the store, below the table; null for a file that lies elsewhere. */
export function keyOf(path: string): string | null {
  if (/^[a-z][a-z0-9+.-]*:/i.test(path) || path.startsWith('/')) return null;
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

/** The other way around. */
export function pathOf(key: string): string {
  return encodeURI(key).replaceAll('#', '%23').replaceAll('?', '%3F');
}

/** @throws SyntaxError */
export function parseCommit(text: string): Action[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line) as Action);
}

/** The line that takes a data file out of the table, now. */
export function removalOf({
  path,
  partitionValues,
  size,
}: Pick<AddFile, 'path' | 'partitionValues' | 'size'>): Action {
  const deletionTimestamp = Date.now();
  return {
    remove: { path, deletionTimestamp, dataChange: true, extendedFileMetadata: true, partitionValues, size },
  };
}

/**
 * The statistics of a file of rows, as JSON text: how many rows, and nothing else. Bounds of texts would be ids and words of
 * people, in a log that lives longer than the files; and deltalake passes over files whose bounds are said of some columns
 * only, whatever the others hold.
 */
export function statsOfRows(rows: number): string {
  return JSON.stringify({ numRecords: rows });
}

/** @param footer the end of a Parquet file: its footer at least */
export function statsOf(footer: Buffer): string {
  const { num_rows: rows } = parquetMetadata(Uint8Array.from(footer).buffer, { geoparquet: false });
  return statsOfRows(Number(rows));
}
