import { createHash } from 'node:crypto';

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

/** Name of the manifest inside an archive folder; it ends in `.jsonl`, so that `*.ndjson*` reads data only. */
export const MANIFEST = '_manifest.jsonl';

/** One line of the manifest: one finished file. Hashes are lower-case hex SHA-256. */
export interface ManifestEntry {
  /** Path inside the archive folder, `/`-separated. */
  readonly file: string;
  readonly records: number;
  /** Size of the file as it lies on disk. */
  readonly bytes: number;
  readonly sha256: string;
  /** ISO 8601 of the first and last record by `received_at`. */
  readonly first_received_at: string;
  readonly last_received_at: string;
  /** Records per event type. */
  readonly types: Readonly<Record<string, number>>;
  /** Hash of the previous line without its line break; of the empty string for the first. */
  readonly previous: string;
}

/** Names of the files that hold records: plain, gzip, zstd. */
export const DATA_EXTENSIONS = { none: '.ndjson', gzip: '.ndjson.gz', zstd: '.ndjson.zst' } as const;

export type Compression = keyof typeof DATA_EXTENSIONS;

/** Folder inside an archive for what is not finished: each writer's open part files, temporary files and locks. */
export const OPEN_FOLDER = '_open';

/** Ends the name of an unfinished file: complete records, uncompressed, waiting for the file's end. */
export const PART_EXTENSION = '.part';

/** SHA-256 of a manifest line without its line break, lower-case hex. Hash the empty string for the first line's `previous`. */
export function hashLine(line: string | Buffer): string {
  return createHash('sha256').update(line).digest('hex');
}

/** A manifest line without its line break. */
export function formatManifestEntry(entry: ManifestEntry): string {
  const { file, records, bytes, sha256, first_received_at, last_received_at, types, previous } = entry;
  return JSON.stringify({
    file,
    records,
    bytes,
    sha256,
    first_received_at,
    last_received_at,
    types,
    previous,
  });
}

/** The entry on a manifest line, or null when the line is not one. A path that would leave the archive is not one. */
export function parseManifestEntry(line: string): ManifestEntry | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  return isManifestEntry(value) ? value : null;
}

function isManifestEntry(value: unknown): value is ManifestEntry {
  return (
    isFields(value) &&
    typeof value['file'] === 'string' &&
    isInside(value['file']) &&
    isCount(value['records']) &&
    isCount(value['bytes']) &&
    typeof value['sha256'] === 'string' &&
    typeof value['first_received_at'] === 'string' &&
    typeof value['last_received_at'] === 'string' &&
    typeof value['previous'] === 'string' &&
    isFields(value['types']) &&
    Object.values(value['types']).every(isCount)
  );
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isInside(file: string): boolean {
  return (
    !/[\\\0]/.test(file) && file.split('/').every((level) => level !== '' && level !== '.' && level !== '..')
  );
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
