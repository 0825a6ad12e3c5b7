import { COMPRESSIONS, type Compression } from './compression.ts';

/**
 * One line of NDJSON in an archive, fields in this order:
 * `{"id","source","received_at","event_type","team_id","user_id","client_user_id","headers":{…},"event":<body verbatim>}`.
 * `received_at` is ISO 8601 with milliseconds, UTC. `event` is the body byte for byte, except that raw line breaks become spaces,
 * the escape of a lone surrogate becomes `\ufffd` (DuckDB and others refuse a file with one), and a body that is not UTF-8 or no
 * JSON object becomes `null`. After each of these `"body_base64"` follows with the exact bytes.
 */
export interface ArchiveRecord {
  readonly id: string;
  readonly source: string;
  readonly received_at: string;
  readonly event_type: string;
  readonly team_id: string | null;
  readonly user_id: string | null;
  readonly client_user_id: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Largest body that a config allows, in bytes: readers of an archive then need less than 512 MB of memory. */
export const LARGEST_BODY = 16 * 2 ** 20;
/** Bytes of a record with its body twice, once as base64. A longer line is reported, and not read. */
export const LONGEST_LINE = 40 * 2 ** 20;

/** Folder in an archive for events that are too large for a sink: each in a file of its own. */
export const CLAIMS_FOLDER = 'claim-checks';

/** The manifest of an archive folder; its lines are in `archive-manifest.ts`. `*.ndjson*` does not match it. */
export const MANIFEST = '_manifest.jsonl';

/** Extensions of the files with records. */
export const DATA_EXTENSIONS: Readonly<Record<Compression, string>> = {
  none: '.ndjson',
  gzip: '.ndjson.gz',
  zstd: '.ndjson.zst',
};

/** Null for a file without records. */
export function compressionOf(file: string): Compression | null {
  return COMPRESSIONS.find((compression) => file.endsWith(DATA_EXTENSIONS[compression])) ?? null;
}

/** Whether a file has records in Parquet, a former format: it counts, but cannot be read. */
export function isOldParquet(file: string): boolean {
  return file.endsWith('.records.parquet');
}

/** The name of a compacted file: `{time of its first record}-compacted-{hash of the files it is made of}`. */
const COMPACTED = /(?:^|\/)(?:\d{8}T\d{9}Z-)?compacted-[0-9a-f]{16}\.ndjson(?:\.gz)?$/;

/** Whether a compaction made the file, which does not count until its line is in the manifest. */
export function isCompacted(file: string): boolean {
  return COMPACTED.test(file);
}

/** Folder in an archive for each writer's open part files, temporary files and locks. */
export const OPEN_FOLDER = '_open';

/** @param name below `OPEN_FOLDER` */
export function isWriterFolder(name: string): boolean {
  return /^[0-9a-f]{12}$/.test(name);
}

/** Extension of an open file: complete records, uncompressed. */
export const PART_EXTENSION = '.part';

/** Extension of a part whose records are in the archive already: it shows which deliveries are repeated. */
export const SENT_EXTENSION = '.sent';

/** The lock in each writer's folder in `OPEN_FOLDER`, held while the writer runs. */
export const WRITER_LOCK = 'lock';

/** Name of an erasure beside the lock of a writer's folder that it searches. */
export const ERASURE = 'erasure';
