import type { ReceiptLog } from '../core/receipt.ts';
import type { Checkpoints } from './checkpoints.ts';
import type { Cursors } from './cursors.ts';
import type { Events } from './events.ts';
import { FreshEntries } from './fresh-entries.ts';
import { entriesAfter, type ReceiptEntries } from './receipt-entries.ts';
import type { Transactions } from './transactions.ts';

const LOG = 'receipts/log';

interface NotedLog extends ReceiptLog {
  /** What it does not have yet is kept for it. */
  readonly isHeld: boolean;
}

interface HeldParts {
  readonly checkpoints: Checkpoints;
  readonly transactions: Transactions;
  readonly cursors: Cursors;
  readonly events: Pick<Events, 'log'>;
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
