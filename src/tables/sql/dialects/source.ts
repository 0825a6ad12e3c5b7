/** Files of rows as `millrace export`, `ndjson` and `backfill` write them. */
export interface Source {
  /** A file, a folder or a pattern with `*`; or an address that the warehouse reads. */
  readonly place: string;
  readonly format: 'parquet' | 'ndjson';
  readonly compression: 'gzip' | 'zstd' | 'none';
  /** The place has all rows of this day: the table keeps no others of it. Null for rows that replace their likes only. */
  readonly day: string | null;
}

export type SourceFormat = Pick<Source, 'format' | 'compression'>;

const EXTENSIONS = { none: '.ndjson', gzip: '.ndjson.gz', zstd: '.ndjson.zst' } as const;

/** How the names of such files end. */
export function extensionOf({ format, compression }: SourceFormat): string {
  return format === 'parquet' ? '.parquet' : EXTENSIONS[compression];
}

/** What the name of a file, or of a pattern, tells of it; null when it tells nothing, as that of a folder. */
export function formatOf(place: string): Partial<SourceFormat> | null {
  if (place.endsWith('.parquet')) return { format: 'parquet' };
  if (place.endsWith('.gz')) return { format: 'ndjson', compression: 'gzip' };
  if (place.endsWith('.zst')) return { format: 'ndjson', compression: 'zstd' };
  if (/\.(?:ndjson|jsonl?)$/.test(place)) return { format: 'ndjson', compression: 'none' };
  return place.endsWith('.ndjson*') ? { format: 'ndjson' } : null;
}

/** True for a folder: what is read are the files below it. */
export function isFolder({ place }: Source): boolean {
  return !place.includes('*') && formatOf(place) === null;
}

/** The folder, with a slash at its end. */
export function folderOf({ place }: Source): string {
  return place.endsWith('/') ? place : `${place}/`;
}

/**
 * A pattern of the files.
 * @param below what stands for all levels of folders
 */
export function patternOf(source: Source, below: '**/*' | '*'): string {
  return isFolder(source) ? `${folderOf(source)}${below}${extensionOf(source)}` : source.place;
}

/** The day that a folder of an export is for; null for another place. */
export function dayOf(place: string): string | null {
  return /(?:^|\/)dt=(\d{4}-\d{2}-\d{2})(?:\/(?:\*[^/]*)?)?$/.exec(place)?.[1] ?? null;
}
