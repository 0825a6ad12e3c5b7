import { commitment, ENTRY_BYTES, entryOf, NO_EVENT, SALT_BYTES, SALT_HEADER } from '../core/receipt.ts';
import { RECORD_HEADER, type RecordParts } from './segments/format.ts';
import type { SegmentLog } from './segments/log.ts';
import { pageAfter } from './segments/pages.ts';
import { eventsOf, identityAt, sourceAndId, textsAt } from './segments/records.ts';

/** Entries of the log of receipts, one for each seq without a hole. */
export interface ReceiptEntries {
  readonly firstSeq: number;
  /** 32 bytes each; a buffer that is all theirs. */
  readonly records: Uint8Array;
}

/** What is read and hashed in one step: about a millisecond of the journal's thread, which commits wait for. */
const PAGE = { count: 256, bytes: 2 ** 20 };
/** In the head of a record. In a text that a sender has chosen its quotation marks are escaped. */
const SALT_KEY = Buffer.from(`"${SALT_HEADER}":"`);
/** Digits of base64url. */
const SALT_DIGITS = Math.ceil((SALT_BYTES * 4) / 3);
const NO_HANDLING = Buffer.from(',null]');

/**
 * The entry of a delivery as it is committed, without decoding it as a whole; what `entriesAfter` makes of it later is the same.
 * @param bodyHash SHA-256 of the body, which the commit needs too
 */
export function entryOfRecordAt(bytes: Buffer, at: number, parts: RecordParts, bodyHash: Buffer): Buffer {
  if (parts.replayed) return NO_EVENT;
  const from = at + RECORD_HEADER + parts.identityBytes;
  const head = bytes.subarray(from, from + parts.headBytes);
  const found = head.indexOf(SALT_KEY);
  if (found === -1) return NO_EVENT;
  if (!head.subarray(-NO_HANDLING.length).equals(NO_HANDLING)) {
    const [, , , , , handling] = textsAt(bytes, at, parts).head;
    if (handling?.only !== undefined) return NO_EVENT;
  }
  const digits = found + SALT_KEY.length;
  const salt = Buffer.from(head.toString('latin1', digits, digits + SALT_DIGITS), 'base64url');
  const { receivedAt } = parts;
  if (salt.length !== SALT_BYTES || !Number.isSafeInteger(receivedAt) || receivedAt < 0) return NO_EVENT;
  const { id } = sourceAndId(identityAt(bytes, at, parts));
  return commitment({ id, receivedAt, salt, bodyHash });
}

/**
 * The entries of the events after a seq, at most so many. What is no delivery, or has no salt, has an entry that commits to
 * nothing: a replay, what was put back, what came while receipts were off, and what cannot be read.
 */
export function entriesAfter(log: SegmentLog, after: number, count: number): ReceiptEntries {
  const limits = { ...PAGE, count: Math.min(count, PAGE.count) };
  const page = pageAfter(log, after, limits, () => undefined);
  const missing = Math.min(limits.count, page.firstSeq - after - 1);
  if (missing > 0) return { firstSeq: after + 1, records: new Uint8Array(missing * ENTRY_BYTES) };
  const records = Buffer.allocUnsafeSlow(page.places.length * ENTRY_BYTES);
  for (const [index, event] of eventsOf(page).entries()) {
    const isDelivery = event.handling.replayId === undefined && event.handling.only === undefined;
    records.set((isDelivery ? entryOf(event) : null) ?? NO_EVENT, index * ENTRY_BYTES);
  }
  return { firstSeq: page.firstSeq, records };
}

/** The entry of one event; null when it has none. */
export function entryAt(log: SegmentLog, seq: number): Buffer | null {
  const { records } = entriesAfter(log, seq - 1, 1);
  const entry = Buffer.from(records.buffer, records.byteOffset, records.length);
  return entry.equals(NO_EVENT) ? null : entry;
}
