/**
 * A record in an archive with `encrypt`, one line of NDJSON, fields in this order:
 * `{"sealed":1,"key":"<id>","received_at":"…","nonce":"<base64>","data":"<base64>"}`.
 * `received_at` is the record's, ISO 8601 with milliseconds, UTC; `key` is random. `data` has the whole record, sealed by
 * `privacy/seal`.
 */
export interface SealedRecord {
  /** Id of the key that opens it: 32 hex digits. */
  readonly key: string;
  readonly received_at: string;
  readonly nonce: Buffer;
  /** Ciphertext and tag. */
  readonly data: Buffer;
}

/** The type under which a manifest counts sealed records. */
export const SEALED_TYPE = 'sealed';

/** Why a sealed record cannot be opened. `erased` is no fault: an erasure destroyed its key. */
export type SealedWhy = 'no_keys' | 'erased' | 'unknown_key' | 'damaged';

export type OpenedRecord =
  | { readonly ok: true; /** Without its line break. */ readonly line: Buffer }
  | { readonly ok: false; readonly why: SealedWhy };

export interface RecordOpener {
  open(sealed: SealedRecord): OpenedRecord;
  /** Number of keys destroyed so far: when it grows, a record that was opened before may be erased. */
  readonly destroyed?: number;
}

const BEGIN = Buffer.from('{"sealed":');
const LINE =
  /^\{"sealed":1,"key":"([0-9a-f]{32})","received_at":"([0-9TZ:.+-]{1,40})","nonce":"([A-Za-z0-9+/]+={0,2})","data":"$/;
const DATA_KEY = Buffer.from('","data":"');
const END = Buffer.from('"}');

/** True for a line that begins as a sealed record. */
export function isSealed(line: Buffer): boolean {
  for (let at = 0; at < BEGIN.length; at += 1) if (line[at] !== BEGIN[at]) return false;
  return line.length > BEGIN.length;
}

/** Null when the line has another format or version. */
export function parseSealed(line: Buffer): SealedRecord | null {
  if (!isSealed(line) || !line.subarray(-END.length).equals(END)) return null;
  const found = line.indexOf(DATA_KEY);
  if (found === -1) return null;
  const from = found + DATA_KEY.length;
  const [, key, receivedAt, nonce] = LINE.exec(line.toString('latin1', 0, from)) ?? [];
  if (key === undefined || receivedAt === undefined || nonce === undefined) return null;
  const data = line.subarray(from, -END.length);
  // Most callers need only the key: the others are decoded when they are read, as long as the line is valid.
  return {
    key,
    received_at: receivedAt,
    get nonce() {
      return Buffer.from(nonce, 'base64');
    },
    get data() {
      return Buffer.from(data.toString('latin1'), 'base64');
    },
  };
}

/** The line of a sealed record, with its line feed. */
export function formatSealed({ key, received_at, nonce, data }: SealedRecord): string {
  return `{"sealed":1,"key":"${key}","received_at":"${received_at}","nonce":"${nonce.toString('base64')}","data":"${data.toString('base64')}"}\n`;
}
