import { SEGMENT_HEADER } from './format.ts';
import type { Segment } from './segment.ts';
import type { FoundFrame, Walker } from './walker.ts';

/** How far the journal's database knows of the frames: what they say beside their events is in it up to here. */
export interface Position {
  /** Name of the oldest segment that counts: those before it are settled, and about to be removed. */
  readonly oldest: string;
  /** Where the next frame begins, and in which segment. */
  readonly segment: string;
  readonly at: number;
  /** Of the last frame. */
  readonly frame: number;
  readonly lastSeq: number;
  /** Sum of the body bytes of all events up to there. */
  readonly upto: number;
  /** When the youngest event of that segment was received, milliseconds since the epoch; 0 when it has none. */
  readonly youngest: number;
}

export type End = Pick<Position, 'frame' | 'lastSeq' | 'upto' | 'youngest'>;

/**
 * Finds the frames that were written after a position, in order, and cuts off what the last write has left of a frame that
 * was not whole: it was never acknowledged. What is followed by a sound frame, lies in front of the position, or has all of its
 * bytes, was acknowledged: it is damage, and stays for who reads it.
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
  const take = (frame: FoundFrame, rest: Pick<Rest, 'upto' | 'youngest'>): void => {
    onFrame(frame);
    end = {
      frame: frame.number,
      lastSeq: Math.max(end.lastSeq, frame.firstSeq + frame.count - 1),
      upto: rest.upto,
      youngest: Math.max(end.youngest, rest.youngest),
    };
  };
  for (const segment of segments) {
    if (position !== null && segment.name < position.segment) continue;
    const isNoted = position?.segment === segment.name;
    if (!isNoted) end = { ...end, youngest: 0, lastSeq: Math.max(end.lastSeq, segment.header.firstSeq - 1) };
    for (let at: number | null = isNoted ? position.at : SEGMENT_HEADER; at !== null && at < segment.size;) {
      const walker: Walker = segment.walkFrom(at, end.upto);
      let frame = walker.sound();
      let rest = restOf(walker, frame);
      while (frame?.kind === 'frame' && rest.isWhole && frame.number > end.frame) {
        segment.noteAt({ seq: frame.firstSeq, at, upto: frame.upto });
        take(frame, rest);
        at = walker.at;
        frame = walker.sound();
        rest = restOf(walker, frame);
      }
      if (at >= segment.size) break;
      const later = segment.nextFrame(at + 1, end.frame);
      if (later === null && segment === segments.at(-1)) {
        const damaged = damagedEnd(segment, at, end, frame);
        if (damaged !== null) {
          if (frame?.kind === 'frame') onFrame(frame);
          end = damaged;
        }
        segment.cut(damaged === null ? at : damaged.at);
      }
      // What it says beside its events was acknowledged as they were.
      else if (frame?.kind === 'frame' && frame.number > end.frame) take(frame, rest);
      at = later?.at ?? null;
    }
  }
  return end;
}

/** Bytes that a disk writes at once. */
const SECTOR = 512;

/**
 * The last frame, where what stands there was written as a whole and changed later. A write that a power cut broke off leaves a
 * file that is too short, or sectors of zeros.
 * @returns where the events end with it; null for a write that was broken off
 */
function damagedEnd(
  segment: Segment,
  at: number,
  end: End,
  head: ReturnType<Walker['sound']>,
): (End & { readonly at: number }) | null {
  const frame = head?.kind === 'frame' && head.number > end.frame ? head : null;
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

interface Rest {
  readonly isWhole: boolean;
  readonly upto: number;
  readonly youngest: number;
}

/** Goes through the records of a frame. */
function restOf(walker: Walker, frame: ReturnType<Walker['sound']>): Rest {
  let upto = frame?.upto ?? 0;
  let youngest = 0;
  let count = 0;
  if (frame?.kind !== 'frame') return { isWhole: false, upto, youngest };
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
