import { hash } from 'node:crypto';
import type { ArchiveRecord } from './archive.ts';
import type { Event } from './event.ts';

/** What an entry of the log commits to. */
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

/** How far a log of receipts was when it was last signed, as the journal knows it. */
export interface ReceiptLog {
  /** Of the log itself: another one in its place has another. */
  readonly id: string;
  readonly origin: string;
  /** The newest event that had an entry then. */
  readonly seq: number;
}

/** Under this, and the id of a log, the journal has which entry its first event is: entry = seq + offset. */
export const LOG_OFFSET = 'receipts/';

/** The log of receipts in the account of a journal. */
export interface ReceiptAccount extends ReceiptLog {
  readonly offset: number;
}

/** Where the log of receipts ended at some time, as its signed checkpoint says it. */
export interface LogHead {
  readonly origin: string;
  readonly size: number;
  /** Base64. */
  readonly root: string;
}

/** Where events wait for a person. */
export type SetAsideKind = 'quarantine' | 'dead-letters';

/** What the log of receipts has of an event that is set aside: base64; null for nothing. */
export interface SetAsideEntry {
  readonly key: number;
  /** Whose dead letter it is; null in quarantine. */
  readonly sink: string | null;
  readonly entry: string | null;
}

/** Bytes of an entry. */
export const ENTRY_BYTES = 32;
/** Of a salt, and digits of base64url. */
export const SALT_BYTES = 16;
export const SALT_DIGITS = Math.ceil((SALT_BYTES * 4) / 3);
/** Among the headers that an event is kept with: its salt, 22 digits of base64url. It goes where the event goes, and with it. */
export const SALT_HEADER = 'millrace-salt';

const DOMAIN = Buffer.from('millrace receipt v1\n');
/** Bytes in front of the id. */
const FIXED = DOMAIN.length + SALT_BYTES + 8 + ENTRY_BYTES;
const scratch = Buffer.concat([DOMAIN], FIXED + 512);

/**
 * The entry of an event in the log: who does not know the salt cannot tell, nor try, what it stands for.
 *
 * SHA-256 of `millrace receipt v1`, a line feed, the salt (16 bytes), the time it was received (milliseconds since the epoch,
 * 8 bytes, big-endian), SHA-256 of the body, and the id. Hashes are strings here, a character for each byte: made as a buffer each takes three
 * times as long.
 * @returns null where the salt is none, or the time no time
 */
export function commitment({ id, receivedAt, salt, bodyHash }: Committed): string | null {
  if (!Number.isSafeInteger(receivedAt) || receivedAt < 0 || salt.length !== SALT_DIGITS) return null;
  // Memory that is used again: this is done for each event.
  const size = FIXED + Buffer.byteLength(id);
  const bytes = size <= scratch.length ? scratch : Buffer.concat([scratch], size);
  if (bytes.write(salt, DOMAIN.length, SALT_BYTES, 'base64url') !== SALT_BYTES) return null;
  bytes.writeUInt32BE(Math.floor(receivedAt / 2 ** 32), FIXED - 40);
  bytes.writeUInt32BE(receivedAt % 2 ** 32, FIXED - 36);
  bytes.write(bodyHash, FIXED - ENTRY_BYTES, ENTRY_BYTES, 'latin1');
  bytes.write(id, FIXED);
  return hash('sha256', bytes.subarray(0, size), 'binary');
}

/** Stands in the log for what was not received as a delivery: a replay, or what was put back. Commits to nothing. */
export const NO_EVENT = Buffer.alloc(ENTRY_BYTES);

/** The entry of an event as it is kept; null when it can have none: receipts were off when it came, or its time is no time. */
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

/** The same of a record of an archive. */
export function entryOfRecord(
  { id, headers, received_at: at }: Pick<ArchiveRecord, 'id' | 'headers' | 'received_at'>,
  body: Buffer,
): Buffer | null {
  return entryOf({ id, headers, receivedAt: Date.parse(at), body });
}
