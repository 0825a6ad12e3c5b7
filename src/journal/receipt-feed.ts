import { ENTRY_BYTES, type ReceiptLog } from '../core/receipt.ts';
import type { Cursors } from './cursors.ts';
import type { StoreBase } from './events.ts';
import { entriesAfter, type ReceiptEntries } from './receipt-entries.ts';

/** Key of the checkpoint. */
const LOG = 'receipts/log';

/** JSON in the checkpoint. */
interface NotedLog extends ReceiptLog {
  /** True while the events that the log does not have are kept for it. */
  readonly isHeld: boolean;
}

interface FeedParts extends StoreBase {
  readonly cursors: Cursors;
}

/** Entries for the log of receipts, and how far that log is. */
export class ReceiptFeed {
  readonly #parts: FeedParts;
  readonly recent = new RecentEntries();

  constructor(parts: FeedParts) {
    this.#parts = parts;
    parts.cursors.holdForReceipts(this.upTo() ?? Infinity);
  }

  /** Entries of at most `count` events after `after`. */
  entries(after: number, count: number): ReceiptEntries {
    const records = this.recent.after(after, count);
    return records === null
      ? entriesAfter(this.#parts.events.log, after, count)
      : { firstSeq: after + 1, records };
  }

  /**
   * Keeps the events that the log does not have yet, also for other programs. Noted without a sync: after a power cut more is kept
   * than needed.
   * @param log null when receipts are off; nothing is kept then
   */
  hold(log: ReceiptLog | null): void {
    const { checkpoints, transactions, cursors } = this.#parts;
    const noted = log ?? this.log();
    cursors.holdForReceipts(log?.seq ?? Infinity);
    this.recent.hold(log?.seq ?? null);
    if (noted === null) return;
    const text = JSON.stringify({ ...noted, isHeld: log !== null } satisfies NotedLog);
    transactions.unsynced(() => transactions.run(() => checkpoints.save(LOG, text)));
  }

  /** The log that the events were entered in last; null when there never was one. */
  log(): NotedLog | null {
    const text = this.#parts.checkpoints.load(LOG);
    return text === null ? null : (JSON.parse(text) as NotedLog);
  }

  /** Seq up to which the log has all entries; null when nothing is kept for a log. */
  upTo(): number | null {
    const noted = this.log();
    return noted?.isHeld === true ? noted.seq : null;
  }
}

/** Entries kept: 2 MiB, some seconds of a flood. */
const MOST = 65_536;

/**
 * The newest entries in memory, as the commits made them. Others (after a start, or when the log is far behind) are made again from
 * the segments.
 */
export class RecentEntries {
  #entries = Buffer.alloc(0);
  #firstSeq = 1;
  #count = 0;
  #isOn = false;

  /** True while there is a log of receipts. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** @param seq up to which the log has all entries; null when there is no log */
  hold(seq: number | null): void {
    this.#isOn = seq !== null;
    if (seq === null) this.#count = 0;
    else this.#drop(seq + 1 - this.#firstSeq);
  }

  /**
   * Adds the entries of a commit. After a gap in the seqs only these are kept.
   * @param entries a character for each byte; null for an event without one
   */
  add(firstSeq: number, entries: readonly (string | null)[]): void {
    if (firstSeq !== this.#firstSeq + this.#count || this.#count + entries.length > MOST) this.#count = 0;
    if (entries.length > MOST) return;
    if (this.#count === 0) this.#firstSeq = firstSeq;
    if (this.#entries.length === 0) this.#entries = Buffer.allocUnsafeSlow(MOST * ENTRY_BYTES);
    for (const entry of entries) {
      const at = this.#count * ENTRY_BYTES;
      if (entry === null) this.#entries.fill(0, at, at + ENTRY_BYTES);
      else this.#entries.write(entry, at, ENTRY_BYTES, 'latin1');
      this.#count += 1;
    }
  }

  /** A copy of at most `most` entries after a seq; null when the first of them is not here. */
  after(seq: number, most: number): Uint8Array | null {
    const from = seq + 1 - this.#firstSeq;
    const count = Math.min(most, this.#count - from);
    if (from < 0 || count <= 0) return null;
    const entries = Buffer.allocUnsafeSlow(count * ENTRY_BYTES);
    this.#entries.copy(entries, 0, from * ENTRY_BYTES, (from + count) * ENTRY_BYTES);
    return entries;
  }

  #drop(count: number): void {
    if (count <= 0) return;
    const left = Math.max(0, this.#count - count);
    this.#entries.copyWithin(0, count * ENTRY_BYTES, this.#count * ENTRY_BYTES);
    this.#firstSeq += count;
    this.#count = left;
  }
}
