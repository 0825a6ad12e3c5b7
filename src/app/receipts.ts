import type { Logger } from 'pino';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
import type { Started } from '../lib/parts.ts';
import { receiptsPlace } from '../privacy/receipts/place.ts';
import { Receipts } from '../privacy/receipts/receipts.ts';
import type { Kept } from './store.ts';
import type { Base } from './system.ts';

/** Before anything comes in, and until all that came is in the log. */
export async function startReceipts(
  { config, clock, log }: Base,
  { journal }: Kept,
): Promise<Started<Receipts | null>> {
  if (journal === null) return { made: null };
  const place = await receiptsPlace(config);
  if (place === null) {
    await forgoReceipts(journal, log);
    return { made: null };
  }
  const { interval } = config.receipts;
  const receipts = await Receipts.open({ ...place, journal, clock, log, interval });
  journal.coverReceipts = () => receipts.cover();
  return { made: receipts, stop: () => receipts.stop() };
}

/** Receipts are off: what the log does not have yet is not kept for it any more. */
async function forgoReceipts(journal: SqliteJournal, log: Logger): Promise<void> {
  const held = await journal.receipts.upTo();
  if (held !== null && held < journal.lastSeq)
    log.warn(
      { entries: journal.lastSeq - held },
      'receipts are off: the last ones that were answered are not in the log, and will be lost to it when the journal clears their events',
    );
  await journal.receipts.hold(null);
}
