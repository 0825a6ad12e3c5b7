import { ENTRY_BYTES, type ReceiptLog } from '../core/receipt.ts';
import type { Cursors } from './cursors.ts';
import type { Base } from './events.ts';
import { entriesAfter, type ReceiptEntries } from './receipt-entries.ts';

const LOG = 'receipts/log';

interface NotedLog extends ReceiptLog {
  /** What it does not have yet is kept for it. */
  readonly isHeld: boolean;
}

interface HeldParts extends Base {
  readonly cursors: Cursors;
}

/** What the journal keeps for the log of receipts, and how far that is. */
export class HeldReceipts {
  readonly #parts: HeldParts;
  readonly fresh = new FreshEntries();

  constructor(parts: HeldParts) {
    this.#parts = parts;
    parts.cursors.hold(this.upTo() ?? Infinity);
  }

  /** Entries of the log for the events after `after`, at most so many. */
  entries(after: number, count: number): ReceiptEntries {
    const records = this.fresh.after(after, count);
    return records === null
      ? entriesAfter(this.#parts.events.log, after, count)
      : { firstSeq: after + 1, records };
  }

  /**
   * Keeps what the log does not have yet, for other programs too; null: receipts are off, and nothing is kept for it. It is noted
   * without a sync: after a power cut more is kept than needed.
   */
  hold(log: ReceiptLog | null): void {
    const { checkpoints, transactions, cursors } = this.#parts;
    const noted = log ?? this.log();
    cursors.hold(log?.seq ?? Infinity);
    this.fresh.hold(log?.seq ?? null);
    if (noted === null) return;
    const text = JSON.stringify({ ...noted, isHeld: log !== null } satisfies NotedLog);
    transactions.unsynced(() => transactions.run(() => checkpoints.save(LOG, text)));
  }

  /** The log that the events were entered in last; null when there never was one. */
  log(): NotedLog | null {
    const text = this.#parts.checkpoints.load(LOG);
    return text === null ? null : (JSON.parse(text) as NotedLog);
  }

  /** The seq behind which the log has nothing; null without one. */
  upTo(): number | null {
    const noted = this.log();
    return noted?.isHeld === true ? noted.seq : null;
  }
}

/** Kept at most: 2 MiB, some seconds of what can come in. */
const MOST = 65_536;

/**
 * Entries of the log of receipts, as they were made with the commits: nothing is read and hashed again for the log. What is not
 * here (after a start, or when the log is far behind) is read from the segments.
 */
export class FreshEntries {
  #entries = Buffer.alloc(0);
  #firstSeq = 1;
  #count = 0;
  #isOn = false;

  /** Whether anybody asks for entries. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** @param seq up to which the log has all entries; null when there is none */
  hold(seq: number | null): void {
    this.#isOn = seq !== null;
    if (seq === null) this.#clear();
    else this.#drop(seq + 1 - this.#firstSeq);
  }

  /**
   * Entries of a commit. What lies between them and those before has none here.
   * @param entries a character for each byte; null for what has none
   */
  add(firstSeq: number, entries: readonly (string | null)[]): void {
    if (firstSeq !== this.#firstSeq + this.#count || this.#count + entries.length > MOST) this.#clear();
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

  /** A copy of the entries after a seq; null when the first of them is not here. */
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
    if (count >= this.#count) return this.#clear();
    this.#entries.copyWithin(0, count * ENTRY_BYTES, this.#count * ENTRY_BYTES);
    this.#firstSeq += count;
    this.#count -= count;
  }

  #clear(): void {
    this.#count = 0;
  }
}
