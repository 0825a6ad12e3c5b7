import { parquetMetadata } from 'hyparquet';

/** Lines of a Delta table's log, by the Delta transaction log protocol. Unknown fields are kept where a line is copied, and otherwise ignored. */
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
}

/** A data file that no longer belongs to the table. */
export interface RemoveFile {
  readonly path: string;
  readonly deletionTimestamp?: number | null;
  readonly dataChange: boolean;
  readonly extendedFileMetadata?: boolean | null;
  readonly partitionValues?: Readonly<Record<string, string | null>> | null;
  readonly size?: number | null;
}

/** The last version that an application has written to the table. */
export interface Txn {
  readonly appId: string;
  readonly version: number;
  readonly lastUpdated?: number | null;
}

/** One line of a commit; it has exactly one of these members. */
export interface Action {
  readonly protocol?: Protocol;
  readonly metaData?: MetaData;
  readonly add?: AddFile;
  readonly remove?: RemoveFile;
  readonly txn?: Txn;
  readonly commitInfo?: Readonly<Record<string, unknown>>;
}

/** Writer of our commits in the log. */
export const ENGINE = 'millrace';

/** The store's key, below the table, of a path in the log; null for a file outside the table. */
export function keyOf(path: string): string | null {
  if (/^[a-z][a-z0-9+.-]*:/i.test(path) || path.startsWith('/')) return null;
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

/** The path in the log of a key. */
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

/** The line that removes a data file from the table, now. */
export function removalOf({ path, partitionValues, size }: AddFile): Action {
  const deletionTimestamp = Date.now();
  return {
    remove: { path, deletionTimestamp, dataChange: true, extendedFileMetadata: true, partitionValues, size },
  };
}

/**
 * The statistics of a file as JSON text: only the number of rows. Bounds of texts would be ids and words of people, in a log that is
 * kept longer than the files; and deltalake skips files that have bounds of some columns only.
 */
export function statsOfRows(rows: number): string {
  return JSON.stringify({ numRecords: rows });
}

/** @param footer the end of a Parquet file, with its whole footer */
export function statsOf(footer: Buffer): string {
  const { num_rows: rows } = parquetMetadata(Uint8Array.from(footer).buffer, { geoparquet: false });
  return statsOfRows(Number(rows));
}
