import type { Logger } from 'pino';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
import type { Stop } from '../lib/parts.ts';
import { receiptsPlace } from '../receipts/place.ts';
import { Receipts } from '../receipts/receipts.ts';
import type { System } from './system.ts';

/** Before anything comes in, and until all that came is in the log. */
export async function startReceipts(system: System): Promise<Stop | void> {
  const { config, journal, clock, log } = system;
  system.receipts = null;
  if (journal === null) return;
  const place = await receiptsPlace(config);
  if (place === null) return forgoReceipts(journal, log);
  const { interval } = config.receipts;
  const receipts = await Receipts.open({ ...place, journal, clock, log, interval });
  system.receipts = receipts;
  journal.coverReceipts = () => receipts.cover();
  return () => receipts.stop();
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
