import { COMPRESSIONS, type Compression } from './compression.ts';

/**
 * The archive's format, shared by the sink that writes it and the commands that read it.
 *
 * A record is one line of NDJSON, fields in this order:
 * `{"id","source","received_at","event_type","team_id","user_id","client_user_id","headers":{…},"event":<body verbatim>}`.
 * `received_at` is ISO 8601 with milliseconds, UTC. `event` is the body byte for byte, with three exceptions, after each of
 * which `"body_base64"` follows with the exact bytes: raw line breaks become spaces (the same JSON); the escape of a lone
 * surrogate becomes `\ufffd`, because one such escape makes DuckDB and others refuse the whole file; and a body that is not
 * UTF-8 or no JSON object is `null`.
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

/** Bytes of the largest body that a config allows: what reads an archive then stays below 512 MB of memory. */
export const LARGEST_BODY = 16 * 2 ** 20;
/** A record holds its body as it is and as base64. Longer lines are no events: they are reported, and their bytes not kept. */
export const LONGEST_LINE = 40 * 2 ** 20;

/** Folder inside an archive for events that were too large for a sink: each whole, in a file of its own. */
export const CLAIMS_FOLDER = 'claim-checks';

/**
 * Name of the manifest inside an archive folder; `archive-manifest.ts` has its lines. It ends in `.jsonl`, so that
 * `*.ndjson*` reads data only.
 */
export const MANIFEST = '_manifest.jsonl';

/** Ends of the names of the files that hold records, by how their lines are compressed. */
export const DATA_EXTENSIONS: Readonly<Record<Compression, string>> = {
  none: '.ndjson',
  gzip: '.ndjson.gz',
  zstd: '.ndjson.zst',
};

/** Null for a file that has another name than those with records. */
export function compressionOf(file: string): Compression | null {
  return COMPRESSIONS.find((compression) => file.endsWith(DATA_EXTENSIONS[compression])) ?? null;
}

/** Whether a file holds records in Parquet, as archives did before they were NDJSON only. It still counts, and cannot be read. */
export function isOldParquet(file: string): boolean {
  return file.endsWith('.records.parquet');
}

/** A file made of others by a compaction: `{time of its first record}-compacted-{hash of what it is made of}`. */
const COMPACTED = /(?:^|\/)(?:\d{8}T\d{9}Z-)?compacted-[0-9a-f]{16}\.ndjson(?:\.gz)?$/;

/** Whether a file is one that a compaction made. Until its line is in the manifest it does not count. */
export function isCompacted(file: string): boolean {
  return COMPACTED.test(file);
}

/** Folder inside an archive for what is not finished: each writer's open part files, temporary files and locks. */
export const OPEN_FOLDER = '_open';

/** Ends the name of an unfinished file: complete records, uncompressed, waiting for the file's end. */
export const PART_EXTENSION = '.part';

/** Ends the name of a part whose records are in their place: what is sent again of it is known by that. */
export const SENT_EXTENSION = '.sent';

/** Name of the lock in each writer's folder below `OPEN_FOLDER`; held for as long as the writer lives. */
export const WRITER_LOCK = 'lock';
