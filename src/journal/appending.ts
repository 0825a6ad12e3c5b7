import { ID_REUSED, type InvalidReason } from '../core/ingest.ts';
import { APPENDED, asideAnswer, type Batch } from './batch.ts';
import type { SeenIds } from './dedup.ts';
import type { Base, Told } from './events.ts';
import type { FreshEntries } from './receipt-feed.ts';
import { Tally } from './hour-counts.ts';
import { bodyHashOf, knownBy } from './identity.ts';
import { entryOfRecordAt } from './receipt-entries.ts';
import { entryRecord, NO_ID, partsAt, type KnownBy, type RecordParts } from './segments/format.ts';
import type { Frame } from './segments/frame.ts';
import { bodyAt, identityAt, identityOf, rowAt, sourceAndId } from './segments/records.ts';
import type { SetAside } from './set-aside.ts';

interface Aside {
  /** JSON. */
  readonly reasons: string;
  readonly at: number;
  readonly parts: RecordParts;
  readonly hasEntry: boolean;
}

export interface AppendingParts extends Base {
  readonly seen: SeenIds;
  readonly setAside: SetAside;
  readonly fresh: FreshEntries;
}

/**
 * Makes a batch durable: what is valid in one frame, what is quarantined in one transaction before it.
 * @returns the seq of each, or what `asideAnswer` says, or 0 for a duplicate; when it throws, none of those with a seq is kept
 */
export function appendBatch(parts: AppendingParts, batch: Batch, now: number): number[] {
  const { events, seen: ids, fresh } = parts;
  const { records } = batch;
  const bytes = Buffer.from(records.buffer, records.byteOffset, records.length);
  const frame = events.newFrame();
  const tally = new Tally();
  const asides: Aside[] = [];
  const answers: number[] = [];
  const entries: (string | null)[] = [];
  const { nextSeq: firstSeq } = frame;
  try {
    for (let at = 0; answers.length < batch.count;) {
      const record = partsAt(bytes, at);
      const invalid = batch.invalid?.[answers.length] ?? null;
      const id = identify(bytes, at, record, batch.keys?.[answers.length]);
      const seen = ids.add(id, now, invalid === null ? frame.nextSeq : 0);
      if (seen === 'repeated') {
        tally.add('duplicates', record.receivedAt);
        answers.push(APPENDED.duplicate);
      } else if (seen === 'new' && invalid === null) {
        tally.add(record.replayed ? 'replayed' : 'accepted', record.receivedAt);
        if (fresh.isOn) entries.push(entryOfRecordAt(bytes, at, record, id.bodyHash));
        answers.push(frame.add(bytes, at, id));
      } else {
        const entry = entryOfRecordAt(bytes, at, record, id.bodyHash);
        const reasons = seen === 'new' ? String(invalid) : withReuse(invalid);
        asides.push({ reasons, at, parts: record, hasEntry: entry !== null });
        answers.push(asideAnswer(seen === 'reused', entry === null ? 0 : addEntry(frame, entry, record)));
        if (entry !== null) entries.push(entry);
      }
      at += record.size;
    }
    const aside = asides.length > 0 ? putAside(parts, bytes, asides) : {};
    events.append(frame, tally, now, aside);
    ids.committed();
    if (fresh.isOn && entries.length > 0) fresh.add(firstSeq, entries);
    return answers;
  } catch (error) {
    ids.takeBack();
    throw error;
  }
}

/** @returns what the frame says of them, though it may have no record of them */
function putAside(
  { transactions, events, seen, setAside }: AppendingParts,
  bytes: Buffer,
  asides: readonly Aside[],
): Told {
  const tally = new Tally();
  const entered: number[] = [];
  let kept = 0;
  const saved = transactions.run(() => {
    for (const { reasons, at, parts, hasEntry } of asides) {
      const key = setAside.quarantine(reasons, rowAt(bytes, at, parts), bodyAt(bytes, at, parts));
      kept = key;
      if (hasEntry) entered.push(key);
      tally.add('quarantined', parts.receivedAt);
    }
    events.counts.save(tally);
    return seen.saveAside();
  });
  saved();
  return { kept, ...(entered.length > 0 ? { entered } : {}) };
}

/** @returns its seq */
function addEntry(frame: Frame, entry: string, { receivedAt }: RecordParts): number {
  return frame.add(entryRecord(Buffer.from(entry, 'latin1'), receivedAt), 0, NO_ID);
}

/** @param key what stands for the id, where it is not the id itself */
function identify(
  bytes: Buffer,
  at: number,
  parts: RecordParts,
  key: string | undefined,
): KnownBy & { readonly bodyHash: string } {
  const identity = identityAt(bytes, at, parts);
  const bodyHash = bodyHashOf(bodyAt(bytes, at, parts));
  const own = key === undefined ? identity : identityOf(sourceAndId(identity).source, key);
  return { ...knownBy(own, bodyHash), bodyHash };
}

/** Reasons as JSON, with that of the id in front. */
function withReuse(invalid: string | null): string {
  return JSON.stringify([ID_REUSED, ...(invalid === null ? [] : (JSON.parse(invalid) as InvalidReason[]))]);
}
