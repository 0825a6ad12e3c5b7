import type { CursorStatus } from '../../core/journal.ts';
import { HeadPacker, type HeadColumns } from './heads.ts';
import { NO_ID, RECORD_HEADER, idOf, type KnownBy } from './format.ts';
import type { SegmentLog, Walked } from './log.ts';
import { titleAt } from './records.ts';
import type { FoundRecord } from './walker.ts';

/** Heads of one answer: a few milliseconds of the writer thread. */
const HEADS = 2000;
/** A head that is not there, or not what was written: nobody's. */
const NOBODY = { id: '', type: '', receivedAt: 0, only: [], replayed: false, erased: false };

/** Heads of the events after `after`, as many as an answer should hold, without their bodies. */
export function headsAfter(log: SegmentLog, after: number): HeadColumns {
  const heads = new HeadPacker(Math.max(after + 1, log.firstSeq), HEADS);
  const missUpTo = (seq: number): void => {
    while (heads.seq < seq && !heads.isFull) heads.other(NOBODY);
  };
  for (const found of log.records(heads.seq)) {
    missUpTo(found.item.seq);
    if (!heads.isFull) packHead(heads, found);
    if (heads.isFull) return heads.pack();
  }
  missUpTo(log.lastSeq + 1);
  return heads.pack();
}

function packHead(heads: HeadPacker, { item, walker }: Walked<FoundRecord>): void {
  const { receivedAt } = item;
  // What is in quarantine is counted there, and its entry nowhere: as what a replay sends.
  if (item.erased) return heads.other({ ...NOBODY, receivedAt, erased: true, replayed: item.isEntry });
  const { bytes, pos } = walker.whole(item, RECORD_HEADER + item.identityBytes + item.headBytes);
  try {
    const { id, type, handling } = titleAt(bytes, pos, item);
    if (handling === null) return heads.plain(id, type, receivedAt);
    const { only = null, replayId } = handling;
    heads.other({ id, type, receivedAt, only, replayed: replayId !== undefined, erased: false });
  } catch {
    heads.other({ ...NOBODY, receivedAt });
  }
}

/** What waits behind a cursor. @param now milliseconds since the epoch */
export function behind(log: SegmentLog, sink: string, seq: number, now: number): CursorStatus {
  const next = seq < log.lastSeq ? log.records(seq + 1).next().value : undefined;
  const backlog = Math.max(0, log.lastSeq - Math.max(seq, log.firstSeq - 1));
  if (next === undefined) return { sink, seq, backlog, backlogBytes: 0, backlogAge: 0 };
  const { upto, receivedAt } = next.item;
  return { sink, seq, backlog, backlogBytes: log.upto - upto, backlogAge: Math.max(0, now - receivedAt) };
}

/** Tells by what the events after a seq are known, and since when: milliseconds since the epoch. */
export function idsAfter(
  log: SegmentLog,
  seq: number,
  tell: (id: KnownBy, seq: number, at: number) => void,
): void {
  let since = 0;
  for (const { item } of log.items(seq + 1)) {
    if (item.kind === 'frame') since = item.writtenAt;
    else if (item.kind === 'record' && item.seq > seq) {
      const id = idOf(item.bytes, item.pos);
      // The head of its frame may be damaged.
      if (id.key !== NO_ID.key) tell(id, item.seq, Math.max(since, item.receivedAt));
    }
  }
}
