import type { JournalEvent } from '../core/event.ts';
import type { EventLog } from '../core/journal.ts';

const PAGE = { count: 1000, bytes: 8 * 2 ** 20 } as const;

/**
 * The events of these seqs that the journal still holds.
 * @param seqs ascending
 */
export async function* eventsOf(
  journal: Pick<EventLog, 'read'>,
  seqs: readonly number[],
): AsyncGenerator<readonly JournalEvent[]> {
  const wanted = new Set(seqs);
  for (let at = 0; at < seqs.length;) {
    const events = await journal.read((seqs[at] ?? 0) - 1, PAGE);
    const last = events.at(-1);
    if (last === undefined) return;
    yield events.filter(({ seq }) => wanted.has(seq));
    while (at < seqs.length && (seqs[at] ?? 0) <= last.seq) at += 1;
  }
}
