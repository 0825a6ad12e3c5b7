import { ID_REUSED, type InvalidReason } from '../core/ingest.ts';
import { asBuffer } from '../lib/byte-writer.ts';
import { APPENDED, asideAnswer, type Batch } from './batch.ts';
import type { SeenIds } from './dedup.ts';
import type { RowNote, StoreBase } from './events.ts';
import { HourTally } from './hour-counts.ts';
import { bodyHashOf, eventHashesOf } from './identity.ts';
import { entryOfRecordAt } from './receipt-entries.ts';
import type { RecentEntries } from './receipt-feed.ts';
import { entryRecord, NO_ID, partsAt, type EventHashes, type RecordParts } from './segments/format.ts';
import type { Frame } from './segments/log.ts';
import { bodyAt, identityAt, identityOf, rowAt, sourceAndId } from './segments/records.ts';
import type { SetAside } from './set-aside.ts';

/** An event of a batch that goes to quarantine. */
interface Quarantined {
  /** JSON. */
  readonly reasons: string;
  readonly at: number;
  readonly parts: RecordParts;
  readonly hasEntry: boolean;
}

export interface AppendingParts extends StoreBase {
  readonly seen: SeenIds;
  readonly setAside: SetAside;
  readonly recentEntries: RecentEntries;
}

/**
 * Makes a batch durable: quarantined events in one transaction, then all others in one frame.
 * @returns for each event its seq, or what `asideAnswer` gives, or `APPENDED.duplicate`
 * @throws MillraceError journal_full; then no event with a seq is kept
 */
export function appendBatch(parts: AppendingParts, batch: Batch, now: number): number[] {
  const { events, seen: ids, recentEntries } = parts;
  const bytes = asBuffer(batch.records);
  const frame = events.log.newFrame();
  const tally = new HourTally();
  const quarantined: Quarantined[] = [];
  const answers: number[] = [];
  const entries: (string | null)[] = [];
  const { nextSeq: firstSeq } = frame;
  try {
    for (let at = 0; answers.length < batch.count;) {
      const record = partsAt(bytes, at);
      const invalid = batch.invalid?.[answers.length] ?? null;
      const bodyHash = bodyHashOf(bodyAt(bytes, at, record));
      const id = identify(identityAt(bytes, at, record), bodyHash, batch.keys?.[answers.length]);
      const seen = ids.add(id, now, invalid === null ? frame.nextSeq : 0);
      if (seen === 'repeated') {
        tally.add('duplicates', record.receivedAt);
        answers.push(APPENDED.duplicate);
      } else if (seen === 'new' && invalid === null) {
        tally.add(record.replayed ? 'replayed' : 'accepted', record.receivedAt);
        if (recentEntries.isOn) entries.push(entryOfRecordAt(bytes, at, record, bodyHash));
        answers.push(frame.add(bytes, at, record, id));
      } else {
        const entry = entryOfRecordAt(bytes, at, record, bodyHash);
        const reasons = seen === 'new' ? String(invalid) : withReuse(invalid);
        quarantined.push({ reasons, at, parts: record, hasEntry: entry !== null });
        answers.push(asideAnswer(seen === 'reused', entry === null ? 0 : addEntry(frame, entry, record)));
        if (entry !== null) entries.push(entry);
      }
      at += record.size;
    }
    const rows = quarantined.length > 0 ? quarantine(parts, bytes, quarantined) : {};
    events.append(frame, tally, now, rows);
    ids.committed();
    if (recentEntries.isOn && entries.length > 0) recentEntries.add(firstSeq, entries);
    return answers;
  } catch (error) {
    ids.takeBack();
    throw error;
  }
}

/** @returns what the frame says of the rows */
function quarantine(
  { transactions, events, seen, setAside }: AppendingParts,
  bytes: Buffer,
  quarantined: readonly Quarantined[],
): RowNote {
  const tally = new HourTally();
  const entered: number[] = [];
  let kept = 0;
  transactions.run(() => {
    for (const { reasons, at, parts, hasEntry } of quarantined) {
      kept = setAside.quarantine(reasons, rowAt(bytes, at, parts), bodyAt(bytes, at, parts));
      if (hasEntry) entered.push(kept);
      tally.add('quarantined', parts.receivedAt);
    }
    events.counts.save(tally);
    seen.saveAside();
  });
  return { kept, ...(entered.length > 0 ? { entered } : {}) };
}

/** Keeps the place of an entry among those of the events. @returns its seq */
function addEntry(frame: Frame, entry: string, { receivedAt }: RecordParts): number {
  const record = entryRecord(Buffer.from(entry, 'latin1'), receivedAt);
  return frame.add(record, 0, partsAt(record, 0), NO_ID);
}

/** @param key replaces the event's id, where the source gives one */
function identify(identity: Buffer, bodyHash: string, key: string | undefined): EventHashes {
  return eventHashesOf(
    key === undefined ? identity : identityOf(sourceAndId(identity).source, key),
    bodyHash,
  );
}

/** The reasons as JSON, the reused id first. */
function withReuse(invalid: string | null): string {
  return JSON.stringify([ID_REUSED, ...(invalid === null ? [] : (JSON.parse(invalid) as InvalidReason[]))]);
}
