import type { Handling } from '../core/event.ts';
import { commitment, ENTRY_BYTES, entryOf, SALT_DIGITS, SALT_HEADER } from '../core/receipt.ts';
import { asBuffer } from '../lib/byte-writer.ts';
import { bodyHashOf } from './identity.ts';
import { partsAt, RECORD_HEADER, type RecordParts } from './segments/format.ts';
import type { SegmentLog } from './segments/log.ts';
import { pageAfter, rowOf } from './segments/pages.ts';
import { bodyAt, identityAt, sourceAndId, textsAt } from './segments/records.ts';

/** Entries for the log of receipts, one for each seq. */
export interface ReceiptEntries {
  readonly firstSeq: number;
  /** 32 bytes each, zeros for an event without one; a buffer of their own, which is transferred. */
  readonly records: Uint8Array;
}

/** Events read and hashed in one step: about a millisecond of the writer thread. */
const PAGE = { count: 256, bytes: 2 ** 20 };
/** End of the head of most records: the salt is the last of the headers, and there is no handling. */
const USUAL = { before: `"${SALT_HEADER}":"`, behind: '"},null]' };
const USUAL_LENGTH = 1 + USUAL.before.length + SALT_DIGITS + USUAL.behind.length;

/**
 * The entry of a delivery as it is committed, a character for each byte; null for a replay, an event that is appended again, and
 * one that came while receipts were off.
 * @param bodyHash SHA-256 of the body, which the commit needs too
 */
export function entryOfRecordAt(
  bytes: Buffer,
  at: number,
  parts: RecordParts,
  bodyHash: string,
): string | null {
  const salt = parts.replayed ? undefined : saltAt(bytes, at, parts);
  if (salt === undefined) return null;
  const { id } = sourceAndId(identityAt(bytes, at, parts));
  return commitment({ id, receivedAt: parts.receivedAt, salt, bodyHash });
}

function saltAt(bytes: Buffer, at: number, parts: RecordParts): string | undefined {
  const from = at + RECORD_HEADER + parts.identityBytes;
  const end = from + parts.headBytes;
  const text = bytes.toString('latin1', Math.max(from, end - USUAL_LENGTH), end);
  // Quotes in a text that a sender has chosen are escaped.
  const isUsual = (text[0] === ',' || text[0] === '{') && text.endsWith(USUAL.behind);
  if (isUsual && text.startsWith(USUAL.before, 1))
    return text.slice(1 + USUAL.before.length, -USUAL.behind.length);
  const [, , , , headers, handling] = textsAt(bytes, at, parts).head;
  return handling?.only === undefined ? headers[SALT_HEADER] : undefined;
}

/** The entries of at most `count` events after a seq. */
export function entriesAfter(log: SegmentLog, after: number, count: number): ReceiptEntries {
  const limits = { ...PAGE, count: Math.min(count, PAGE.count) };
  const page = pageAfter(log, after, limits, () => undefined);
  const missing = Math.min(limits.count, page.firstSeq - after - 1);
  if (missing > 0) return { firstSeq: after + 1, records: new Uint8Array(missing * ENTRY_BYTES) };
  const bytes = asBuffer(page.records);
  const records = Buffer.from(new ArrayBuffer(page.places.length * ENTRY_BYTES));
  for (const [index, at] of page.places.entries())
    if (at >= 0) writeEntry(bytes, at, records, index * ENTRY_BYTES);
  return { firstSeq: page.firstSeq, records };
}

function writeEntry(bytes: Buffer, at: number, records: Buffer, to: number): void {
  const parts = partsAt(bytes, at);
  const body = bodyAt(bytes, at, parts);
  if (parts.isEntry) body.copy(records, to, 0, ENTRY_BYTES);
  else if (!parts.erased) {
    const entry = entryOfRecordAt(bytes, at, parts, bodyHashOf(body));
    if (entry !== null) records.write(entry, to, ENTRY_BYTES, 'latin1');
  }
}

/** The entry of one event, at its own seq or, if it was retried, at that of its first record; null when it has none. */
export function entryOfSeq(log: SegmentLog, seq: number): Buffer | null {
  const found = rowOf(log, seq);
  if (found === null) return null;
  const [id, , , , , , receivedAt, headers, handling] = found.row;
  return entryOfRow({ id, receivedAt, headers, handling, body: found.body });
}

/** Columns of a row; headers and handling are JSON. */
export interface EntryColumns {
  readonly id: string;
  readonly receivedAt: number;
  readonly headers: string;
  readonly handling: string | null;
  readonly body: Buffer;
}

/** The entry of a stored event; null when it has none. */
export function entryOfRow({ headers, handling, ...event }: EntryColumns): Buffer | null {
  const { replayId } = (handling === null ? {} : JSON.parse(handling)) as Handling;
  // A replayed event may come from another receiver, with another log.
  if (replayId !== undefined) return null;
  return entryOf({ ...event, headers: JSON.parse(headers) as Record<string, string> });
}
