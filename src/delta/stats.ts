import { parquetMetadata } from 'hyparquet';

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
