import { hash } from 'node:crypto';
import type { ArchiveRecord } from './archive.ts';
import type { Event } from './event.ts';

/** The values that an entry of the log commits to. */
export interface Committed {
  /** The id that the delivery was signed with. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  /** 22 digits of base64url. */
  readonly salt: string;
  /** SHA-256 of the body as it was signed, a character for each byte. */
  readonly bodyHash: string;
}

/** The log of receipts when it was last signed, as noted in the journal. */
export interface ReceiptLog {
  /** Another log has another id. */
  readonly id: string;
  readonly origin: string;
  /** Seq of the newest event that had an entry then. */
  readonly seq: number;
}

/** Prefix of the journal's checkpoint, followed by the id of a log, that has its offset: entry = seq + offset. */
export const LOG_OFFSET = 'receipts/';

export interface ReceiptAccount extends ReceiptLog {
  readonly offset: number;
}

/** The end of the log of receipts at some time, by its signed checkpoint. */
export interface LogHead {
  readonly origin: string;
  readonly size: number;
  /** Base64. */
  readonly root: string;
}

/** Where events wait for a person. */
export type SetAsideKind = 'quarantine' | 'dead-letters';

/** The entry of a quarantined event or dead letter. */
export interface SetAsideEntry {
  readonly key: number;
  /** Sink of the dead letter; null in quarantine. */
  readonly sink: string | null;
  readonly entry: string | null;
}

export const ENTRY_BYTES = 32;
export const SALT_BYTES = 16;
export const SALT_DIGITS = Math.ceil((SALT_BYTES * 4) / 3);
/** Header of a kept event with its salt, 22 digits of base64url. It is kept and removed with the event. */
export const SALT_HEADER = 'millrace-salt';

const DOMAIN = Buffer.from('millrace receipt v1\n');
/** Bytes before the id. */
const FIXED = DOMAIN.length + SALT_BYTES + 8 + ENTRY_BYTES;
const scratch = Buffer.concat([DOMAIN], FIXED + 512);

/**
 * The entry of an event in the log: without the salt, one can neither read nor guess the event.
 *
 * SHA-256 of `millrace receipt v1`, a line feed, the salt (16 bytes), the time of receipt (milliseconds since the epoch,
 * 8 bytes, big-endian), SHA-256 of the body, and the id. Hashes are strings, one character a byte: buffers take three times as
 * long.
 * @returns null for an invalid salt or time
 */
export function commitment({ id, receivedAt, salt, bodyHash }: Committed): string | null {
  if (!Number.isSafeInteger(receivedAt) || receivedAt < 0 || salt.length !== SALT_DIGITS) return null;
  // Reused memory: this runs for each event.
  const size = FIXED + Buffer.byteLength(id);
  const bytes = size <= scratch.length ? scratch : Buffer.concat([scratch], size);
  if (bytes.write(salt, DOMAIN.length, SALT_BYTES, 'base64url') !== SALT_BYTES) return null;
  bytes.writeUInt32BE(Math.floor(receivedAt / 2 ** 32), FIXED - 40);
  bytes.writeUInt32BE(receivedAt % 2 ** 32, FIXED - 36);
  bytes.write(bodyHash, FIXED - ENTRY_BYTES, ENTRY_BYTES, 'latin1');
  bytes.write(id, FIXED);
  return hash('sha256', bytes.subarray(0, size), 'binary');
}

/** Entry of an event that was not received as a delivery: replayed or retried. Commits to nothing. */
export const NO_EVENT = Buffer.alloc(ENTRY_BYTES);

/** The entry of a kept event; null when receipts were off, or its time is invalid. */
export function entryOf({
  id,
  receivedAt,
  headers,
  body,
}: Pick<Event, 'id' | 'receivedAt' | 'headers' | 'body'>): Buffer | null {
  const salt = headers[SALT_HEADER];
  if (salt === undefined) return null;
  const entry = commitment({ id, receivedAt, salt, bodyHash: hash('sha256', body, 'binary') });
  return entry === null ? null : Buffer.from(entry, 'latin1');
}

/** The same for a record of an archive. */
export function entryOfRecord(
  { id, headers, received_at: at }: Pick<ArchiveRecord, 'id' | 'headers' | 'received_at'>,
  body: Buffer,
): Buffer | null {
  return entryOf({ id, headers, receivedAt: Date.parse(at), body });
}
