import { DATA_EXTENSIONS } from '../../../core/archive.ts';
import type { Compression } from '../../../core/compression.ts';

/** Files of rows that `millrace export`, `ndjson` or `backfill` has written. */
export interface Source {
  /** A file, a folder or a pattern with `*`; or an address that the warehouse reads. */
  readonly place: string;
  readonly format: 'parquet' | 'ndjson';
  readonly compression: Compression;
  /** The files have all rows of this day, which replace the table's. Null for rows that replace only the same rows. */
  readonly day: string | null;
}

export type SourceFormat = Pick<Source, 'format' | 'compression'>;

/** End of the files' names. */
export function extensionOf({ format, compression }: SourceFormat): string {
  return format === 'parquet' ? '.parquet' : DATA_EXTENSIONS[compression];
}

/** What the name of a file or of a pattern says; null for the name of a folder. */
export function formatOf(place: string): Partial<SourceFormat> | null {
  if (place.endsWith('.parquet')) return { format: 'parquet' };
  if (place.endsWith('.gz')) return { format: 'ndjson', compression: 'gzip' };
  if (place.endsWith('.zst')) return { format: 'ndjson', compression: 'zstd' };
  if (/\.(?:ndjson|jsonl?)$/.test(place)) return { format: 'ndjson', compression: 'none' };
  return place.endsWith('.ndjson*') ? { format: 'ndjson' } : null;
}

/** True for a folder, of which all files below are read. */
export function isFolder({ place }: Source): boolean {
  return !place.includes('*') && formatOf(place) === null;
}

/** The folder, with a slash at its end. */
export function folderOf({ place }: Source): string {
  return place.endsWith('/') ? place : `${place}/`;
}

/** A pattern of the files. @param below pattern of all levels of folders */
export function patternOf(source: Source, below: '**/*' | '*'): string {
  return isFolder(source) ? `${folderOf(source)}${below}${extensionOf(source)}` : source.place;
}

/** The day of an export's folder; null for another place. */
export function dayOf(place: string): string | null {
  return /(?:^|\/)dt=(\d{4}-\d{2}-\d{2})(?:\/(?:\*[^/]*)?)?$/.exec(place)?.[1] ?? null;
}
