import { messageOf } from '../../core/errors.ts';
import type { JournalAccount } from '../../core/journal.ts';
import type { LogHead } from '../../core/receipt.ts';
import type { LogAccount } from './report.ts';

/** Reads the signed head and the id of the log of receipts; rejects when the signature is wrong. */
export type HeadReader = () => Promise<LogHead & { readonly id: string | null }>;

interface Counted {
  readonly account: JournalAccount;
  readonly log: LogAccount | null;
  /** Why journal and log do not match, and by how many events. */
  readonly problem: { readonly count: number; readonly detail: string } | null;
}

/**
 * Reads the account of a journal between two heads of the log of receipts, which grows: the journal has every event of
 * the first head, and the second head every event that the journal noted as entered.
 */
export async function accountWithLog(
  head: HeadReader | null,
  read: () => Promise<JournalAccount>,
): Promise<Counted> {
  if (head === null) return { account: await read(), log: null, problem: null };
  // An unreadable log is a difference; the rest is counted.
  const look = (): Promise<Awaited<ReturnType<HeadReader>> | string> => head().catch(messageOf);
  const before = await look();
  const account = await read();
  const after = await look();
  const differs = (detail: string, count = 1): Counted => ({
    account,
    log: null,
    problem: { count, detail },
  });
  if (typeof before === 'string') return differs(before);
  if (typeof after === 'string') return differs(after);
  const { id, origin, size, root } = before;
  const { receipts } = account;
  if (receipts === undefined) {
    if (size === 0) return { account, log: null, problem: null };
    return differs(`the journal knows nothing of the log ${origin}, which has ${size} entries`);
  }
  if (receipts.id !== id || receipts.id !== after.id)
    return differs(`${origin} is not the log of receipts that the journal’s events were entered in`);
  const covered = size - receipts.offset - 1;
  const extra = covered - account.lastSeq;
  if (extra > 0)
    return differs(
      `entries of the log ${origin}, which has ${size}, are of events that the journal does not have: it is not the journal it was`,
      extra,
    );
  const gone = receipts.seq + receipts.offset + 1 - after.size;
  if (gone > 0)
    return differs(
      `entries of the log ${origin} are gone: it has ${after.size}, and an older copy or a part of it is there`,
      gone,
    );
  return { account, log: { origin, size, root, waiting: -extra }, problem: null };
}
