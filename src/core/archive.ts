/**
 * The archive's format, shared by the sink that writes it and the commands that read it.
 *
 * A record is one line of NDJSON, fields in this order:
 * `{"id","source","received_at","event_type","team_id","user_id","client_user_id","headers":{…},"event":<body verbatim>}`.
 * `received_at` is ISO 8601 with milliseconds, UTC. `event` is the body byte for byte; if the body holds raw line breaks
 * they become spaces (the same JSON) and `"body_base64"` follows with the exact bytes.
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
