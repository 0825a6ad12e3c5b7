/**
 * A sealed record: what an archive with `encrypt` holds instead of a record, one line of NDJSON.
 * `{"sealed":1,"key":"<id>","received_at":"…","nonce":"<base64>","data":"<base64>"}`, fields in this order.
 * `received_at` is the record's, ISO 8601 with milliseconds, UTC; `key` is random and says nothing of whose it is.
 * Everything else of the record is inside `data`. How it gets in and out is `privacy/seal`.
 */
export interface SealedRecord {
  /** Id of the key that opens it: 32 hex digits. */
  readonly key: string;
  readonly received_at: string;
  readonly nonce: Buffer;
  /** Ciphertext and tag. */
  readonly data: Buffer;
}

/** What a manifest counts sealed records as: their event types are inside. */
export const SEALED_TYPE = 'sealed';

/** Why a sealed record stays closed. `erased` is no fault: its key was destroyed on purpose. */
export type SealedWhy = 'no_keys' | 'erased' | 'unknown_key' | 'damaged';

export type OpenedRecord =
  | { readonly ok: true; /** The record's line without its line break. */ readonly line: Buffer }
  | { readonly ok: false; readonly why: SealedWhy };

/** Opens sealed records with keys it has. */
export interface RecordOpener {
  open(sealed: SealedRecord): OpenedRecord;
  /** Keys destroyed so far: when it grows, what was opened before may not open any more. */
  readonly destroyed?: number;
}

const BEGIN = Buffer.from('{"sealed":');
const LINE =
  /^\{"sealed":1,"key":"([0-9a-f]{32})","received_at":"([0-9TZ:.+-]{1,40})","nonce":"([A-Za-z0-9+/]+={0,2})","data":"$/;
const DATA_KEY = Buffer.from('","data":"');
const END = Buffer.from('"}');

/** True for a line that holds, or claims to hold, a sealed record. */
export function isSealed(line: Buffer): boolean {
  for (let at = 0; at < BEGIN.length; at += 1) if (line[at] !== BEGIN[at]) return false;
  return line.length > BEGIN.length;
}

/** Takes a sealed line apart; null when it has another shape, or another version's. */
export function parseSealed(line: Buffer): SealedRecord | null {
  if (!isSealed(line) || !line.subarray(-END.length).equals(END)) return null;
  const found = line.indexOf(DATA_KEY);
  if (found === -1) return null;
  const from = found + DATA_KEY.length;
  const [, key, receivedAt, nonce] = LINE.exec(line.toString('latin1', 0, from)) ?? [];
  if (key === undefined || receivedAt === undefined || nonce === undefined) return null;
  return new SealedLine(key, receivedAt, nonce, line.subarray(from, -END.length));
}

/** Of most records nobody needs more than the key: what is inside is decoded when it is asked for, while the line is there. */
class SealedLine implements SealedRecord {
  readonly key: string;
  readonly received_at: string;
  readonly #nonce: string;
  readonly #data: Buffer;

  constructor(key: string, receivedAt: string, nonce: string, data: Buffer) {
    this.key = key;
    this.received_at = receivedAt;
    this.#nonce = nonce;
    this.#data = data;
  }

  get nonce(): Buffer {
    return Buffer.from(this.#nonce, 'base64');
  }

  get data(): Buffer {
    return Buffer.from(this.#data.toString('latin1'), 'base64');
  }
}

/** The line of a sealed record, with its line feed. */
export function formatSealed({ key, received_at, nonce, data }: SealedRecord): string {
  return `{"sealed":1,"key":"${key}","received_at":"${received_at}","nonce":"${nonce.toString('base64')}","data":"${data.toString('base64')}"}\n`;
}
