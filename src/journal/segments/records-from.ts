import type { SegmentLog } from './log.ts';
import type { Segment } from './segment.ts';
import type { FoundFrame, FoundRecord, Gap, Walker } from './walker.ts';

/** What was come across, and how: a record's walker says whether it is whole. */
export interface Walked<T> {
  readonly item: T;
  readonly walker: Walker;
  readonly segment: Segment;
}

/** Bytes between two points that are noted on the way. */
const NOTE_EVERY = 64 * 1024;

/**
 * All items at or after the last known point in front of a seq, in order, segment by segment: a frame is told before its
 * records only where the walk begins in front of it.
 * @param keepingOf as the walker takes it
 */
export function* itemsFrom(
  log: SegmentLog,
  seq: number,
  keepingOf?: (segment: Segment) => number,
): Generator<Walked<FoundFrame | FoundRecord | Gap>> {
  const { segments } = log;
  const first = segments.indexOf(log.holding(seq));
  for (const segment of segments.slice(first)) {
    const walker = segment.walk(seq, keepingOf?.(segment));
    let noted = walker.at;
    for (let item = walker.next(); item !== null; item = walker.next()) {
      if (item.kind !== 'gap' && item.at - noted > NOTE_EVERY) {
        segment.noteAt({
          seq: item.kind === 'frame' ? item.firstSeq : item.seq,
          at: item.at,
          upto: item.upto,
        });
        noted = item.at;
      }
      yield { item, walker, segment };
    }
  }
}

/** The records at and after a seq, whole or not. */
export function* recordsFrom(
  log: SegmentLog,
  seq: number,
  keepingOf?: (segment: Segment) => number,
): Generator<Walked<FoundRecord>> {
  for (const walked of itemsFrom(log, seq, keepingOf))
    if (walked.item.kind === 'record' && walked.item.seq >= seq) yield walked as Walked<FoundRecord>;
}
