import { SEGMENT_HEADER } from './format.ts';
import type { Segment } from './segment.ts';
import type { FoundFrame, Walker } from './walker.ts';

/** Up to where the notes of the frames are in the journal's database. */
export interface Position {
  /** Name of the oldest segment; older files are settled and about to be removed. */
  readonly oldest: string;
  /** Where the next frame begins, and in which segment. */
  readonly segment: string;
  readonly at: number;
  /** Number of the last frame. */
  readonly frame: number;
  readonly lastSeq: number;
  /** Body bytes of all events up to there. */
  readonly upto: number;
  /** When the youngest event of that segment was received, milliseconds since the epoch; 0 when it has none. */
  readonly youngest: number;
}

export type End = Pick<Position, 'frame' | 'lastSeq' | 'upto' | 'youngest'>;

/**
 * Finds the frames written after a position, in order, and cuts off an incomplete one at the end, which was never acknowledged.
 * An incomplete frame was acknowledged if it is before the position, if a sound frame follows, or if all of its bytes are there:
 * then it is damaged, and stays for readers to find.
 *
 * @param segments in order
 * @returns where the events end
 */
export function recover(
  segments: readonly Segment[],
  position: Position | null,
  onFrame: (frame: FoundFrame) => void,
): End {
  let end: End = position ?? { frame: 0, lastSeq: 0, upto: 0, youngest: 0 };
  const take = (frame: FoundFrame, records: Pick<Records, 'upto' | 'youngest'>): void => {
    onFrame(frame);
    end = {
      frame: frame.number,
      lastSeq: Math.max(end.lastSeq, frame.firstSeq + frame.count - 1),
      upto: records.upto,
      youngest: Math.max(end.youngest, records.youngest),
    };
  };
  for (const segment of segments) {
    if (position !== null && segment.name < position.segment) continue;
    const isNoted = position?.segment === segment.name;
    if (!isNoted) end = { ...end, youngest: 0, lastSeq: Math.max(end.lastSeq, segment.header.firstSeq - 1) };
    for (let at: number | null = isNoted ? position.at : SEGMENT_HEADER; at !== null && at < segment.size;) {
      const walker: Walker = segment.walkFrom(at, end.upto);
      let frame = frameOf(walker);
      let records = recordsOf(walker, frame);
      while (frame !== null && records.isWhole && frame.number > end.frame) {
        segment.noteAt({ seq: frame.firstSeq, at, upto: frame.upto });
        take(frame, records);
        at = walker.at;
        frame = frameOf(walker);
        records = recordsOf(walker, frame);
      }
      if (at >= segment.size) break;
      if (frame !== null && frame.number <= end.frame) frame = null;
      const later = segment.nextFrame(at + 1, end.frame);
      if (later !== null || segment !== segments.at(-1)) {
        // What a damaged frame says besides its events was acknowledged with them.
        if (frame !== null) take(frame, records);
      } else {
        const damaged = damagedEnd(segment, at, end, frame);
        if (damaged !== null) {
          if (frame !== null) onFrame(frame);
          end = damaged;
        }
        segment.cut(damaged?.at ?? at);
      }
      at = later?.at ?? null;
    }
  }
  return end;
}

/** Bytes that a disk writes at once. */
const SECTOR = 512;

/**
 * The end of the events after a last frame that was written completely and damaged later. A write that a power cut interrupted
 * leaves a file that is too short, or sectors of zeros.
 * @param frame null where its head is damaged
 * @returns null for an interrupted write
 */
function damagedEnd(
  segment: Segment,
  at: number,
  end: End,
  frame: FoundFrame | null,
): (End & { readonly at: number }) | null {
  const size = frame === null ? segment.size - at : frame.headSize + frame.size;
  if (at + size > segment.size || hasEmptySector(segment.read(at, size), at)) return null;
  let found = { ...end, frame: frame?.number ?? end.frame + 1, at };
  const walker = segment.walkFrom(at, end.upto);
  for (let item = walker.next(); item !== null; item = walker.next()) {
    if (item.kind !== 'record' || item.seq <= found.lastSeq) continue;
    const youngest = Math.max(found.youngest, item.receivedAt);
    found = { ...found, lastSeq: item.seq, upto: item.upto + item.bodyBytes, youngest, at: walker.at };
  }
  if (frame === null) return found.lastSeq > end.lastSeq ? found : null;
  return { ...found, lastSeq: Math.max(found.lastSeq, frame.firstSeq + frame.count - 1), at: at + size };
}

/** @param at of the bytes in their file */
function hasEmptySector(bytes: Buffer, at: number): boolean {
  for (let from = 0; from < bytes.length;) {
    const end = Math.min(from + SECTOR - ((at + from) % SECTOR), bytes.length);
    if (bytes.subarray(from, end).every((byte) => byte === 0)) return true;
    from = end;
  }
  return false;
}

function frameOf(walker: Walker): FoundFrame | null {
  const item = walker.sound();
  return item?.kind === 'frame' ? item : null;
}

/** The records of a frame, as far as they are undamaged. */
interface Records {
  readonly isWhole: boolean;
  readonly upto: number;
  readonly youngest: number;
}

/** Walks through the records of a frame. */
function recordsOf(walker: Walker, frame: FoundFrame | null): Records {
  let upto = frame?.upto ?? 0;
  let youngest = 0;
  let count = 0;
  if (frame === null) return { isWhole: false, upto, youngest };
  const end = frame.at + frame.headSize + frame.size;
  while (walker.at < end) {
    const record = walker.sound();
    if (record?.kind !== 'record' || !walker.isWhole(record)) break;
    upto += record.bodyBytes;
    youngest = Math.max(youngest, record.receivedAt);
    count += 1;
  }
  return { isWhole: count === frame.count && walker.at === end, upto, youngest };
}
