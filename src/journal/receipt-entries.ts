import { ENTRY_BYTES, entryOf, NO_EVENT } from '../core/receipt.ts';
import type { SegmentLog } from './segments/log.ts';
import { pageAfter } from './segments/pages.ts';
import { eventsOf } from './segments/records.ts';

/** Entries of the log of receipts, one for each seq without a hole. */
export interface ReceiptEntries {
  readonly firstSeq: number;
  /** 32 bytes each; a buffer that is all theirs. */
  readonly records: Uint8Array;
}

/** Bodies that are hashed in one step. */
const BYTES = 2 ** 20;

/**
 * The entries of the events after a seq, at most so many. What is no delivery, or has no salt, has an entry that commits to
 * nothing: a replay, what was put back, what came while receipts were off, and what cannot be read.
 */
export function entriesAfter(log: SegmentLog, after: number, count: number): ReceiptEntries {
  const page = pageAfter(log, after, { count, bytes: BYTES }, () => undefined);
  const missing = Math.min(count, page.firstSeq - after - 1);
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
