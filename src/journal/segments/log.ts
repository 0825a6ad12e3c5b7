import { syncFolderNow } from '../../lib/durable.ts';
import { encodeFrameHead } from './format.ts';
import { Frame } from './frame.ts';
import { recover, type End, type Position } from './recovery.ts';
import { firstSeqOf, Segment, segmentsIn, unlessShort } from './segment.ts';
import type { FoundFrame, FoundRecord, Gap, Walker } from './walker.ts';

/** What was come across, and how: a record's walker says whether it is whole. */
export interface Walked<T> {
  readonly item: T;
  readonly walker: Walker;
  readonly segment: Segment;
}

/** Bytes between two points that are noted on the way. */
const NOTE_EVERY = 64 * 1024;

export interface LogOptions {
  readonly folder: string;
  readonly salt: number;
  /** Bytes after which a new segment begins. */
  readonly segmentBytes: number;
  /** Null for a journal that has no segment yet. */
  readonly position: Position | null;
  /** No event gets a seq up to this one. */
  readonly least: number;
}

/**
 * The events, in segments: appended at the end, cleared away from the front by whole segments, without holes in their seqs.
 * Modes: it is open from the start, and `close` is for good. An error of `append` other than journal_full leaves it unusable.
 */
export class SegmentLog {
  readonly #folder: string;
  readonly #segmentBytes: number;
  /** In order; the last one grows. */
  readonly #segments: Segment[];
  #end: End;
  /** When the first frame of the newest segment was written, milliseconds since the epoch. */
  #begunAt: number | null = null;
  readonly salt: number;

  /** @param onFrame told of each frame after the position, in order */
  constructor(
    { folder, salt, segmentBytes, position, least }: LogOptions,
    onFrame: (frame: FoundFrame) => void,
  ) {
    this.#folder = folder;
    this.#segmentBytes = segmentBytes;
    this.salt = salt;
    const names = segmentsIn(folder);
    for (const name of names.filter((one) => one < (position?.oldest ?? '')))
      Segment.open(folder, name, salt).remove();
    this.#segments = names
      .filter((name) => name >= (position?.oldest ?? ''))
      .map((name) => Segment.open(folder, name, salt));
    const end = recover(this.#segments, position, onFrame);
    // Without its header and without an event it is as good as gone.
    if ((this.#segments.at(-1)?.isDamaged ?? false) && this.#newest.header.firstSeq > end.lastSeq)
      this.#segments.pop()?.remove();
    const isGone = position !== null && (this.#segments.at(-1)?.name ?? '') < position.segment;
    // What came last in a segment that is gone was not noted: one seq stands for it, and is not given again.
    const lost = isGone ? firstSeqOf(position.segment) : 0;
    this.#end = { ...end, lastSeq: Math.max(end.lastSeq, least, lost) };
    const newest = this.#segments.at(-1);
    // Frames that were found and are not synced yet count from now on.
    newest?.cut(newest.size);
    const isShort = position !== null && newest?.name === position.segment && newest.size < position.at;
    if (newest === undefined || isGone || isShort || newest.isDamaged || this.#end.lastSeq > end.lastSeq)
      this.roll();
    else {
      syncFolderNow(folder);
      const first = newest.walk(0).sound();
      if (first?.kind === 'frame') this.#begunAt = first.writtenAt;
    }
  }

  get lastSeq(): number {
    return this.#end.lastSeq;
  }

  /** The oldest seq still held; one past the newest when none is. */
  get firstSeq(): number {
    return Math.min(this.lastSeq + 1, this.#segments[0]?.header.firstSeq ?? Infinity);
  }

  /** Sum of the body bytes of all events that ever were. */
  get upto(): number {
    return this.#end.upto;
  }

  /** On disk. */
  get bytes(): number {
    return this.#segments.reduce((sum, { size }) => sum + size, 0);
  }

  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get position(): Position {
    const { name, size } = this.#newest;
    return { oldest: this.#segments[0]?.name ?? name, segment: name, at: size, ...this.#end };
  }

  get #newest(): Segment {
    return this.#segments.at(-1) as Segment;
  }

  newFrame(): Frame {
    return new Frame(this.lastSeq, this.salt);
  }

  /**
   * Writes a frame; it is on disk when this returns.
   * @param note JSON, given back by the opening that follows a crash
   * @throws MillraceError journal_full, and all is as it was
   */
  append(frame: Frame, note: string, now: number): void {
    if (this.#newest.size >= this.#segmentBytes) this.roll();
    const { lastSeq, upto, youngest } = this.#end;
    const { count, size, bodyBytes, pieces } = frame;
    const number = this.#end.frame + 1;
    const head = encodeFrameHead(
      { number, firstSeq: lastSeq + 1, count, size, upto, writtenAt: now, note },
      this.salt,
    );
    this.#newest.append([head, ...pieces], { seq: lastSeq + 1, upto });
    this.#begunAt ??= now;
    this.#end = {
      frame: number,
      lastSeq: lastSeq + count,
      upto: upto + bodyBytes,
      youngest: Math.max(youngest, frame.youngest),
    };
  }

  /** Begins a new segment. @throws MillraceError journal_full, and all is as it was */
  roll(): void {
    const { lastSeq, frame, upto, youngest } = this.#end;
    const header = {
      salt: this.salt,
      firstSeq: lastSeq + 1,
      firstFrame: frame + 1,
      upto,
      youngestBefore: youngest,
    };
    this.#segments.push(Segment.create(this.#folder, header));
    this.#end = { ...this.#end, youngest: 0 };
    this.#begunAt = null;
  }

  /** Whether the newest segment has events, and got the first one before a time. */
  isDue(before: number): boolean {
    return this.#newest.header.firstSeq <= this.lastSeq && (this.#begunAt ?? 0) < before;
  }

  /** Whether all events in front of the newest segment are settled. */
  isNewestNext(upTo: number): boolean {
    return this.#newest.header.firstSeq - 1 <= upTo;
  }

  /** The oldest segment that may go: all of its events are settled, and were received before a time. Null when none may. */
  removable(upTo: number, before = Infinity): { readonly lastSeq: number } | null {
    const next = this.#segments[1];
    if (next === undefined) return null;
    const { firstSeq, youngestBefore } = next.header;
    return firstSeq - 1 <= upTo && youngestBefore < before ? { lastSeq: firstSeq - 1 } : null;
  }

  /** What `position` says once the oldest segment is removed. */
  get positionAfter(): Position {
    return { ...this.position, oldest: this.#segments[1]?.name ?? this.position.oldest };
  }

  removeOldest(): void {
    this.#segments.shift()?.remove();
    // A name that comes back after a crash is older than the position, and is removed then.
    unlessShort(this.#folder, () => syncFolderNow(this.#folder));
  }

  /** The segment that holds a seq, or the next one that is held. */
  holding(seq: number): Segment {
    const next = this.#segments.findIndex(({ header }) => header.firstSeq > seq);
    return this.#segments[next === -1 ? this.#segments.length - 1 : Math.max(0, next - 1)] as Segment;
  }

  /**
   * All items at or after the last known point in front of a seq, in order, segment by segment: a frame is told before its
   * records only where the walk begins in front of it.
   * @param keepingOf as the walker takes it
   */
  *items(
    seq: number,
    keepingOf?: (segment: Segment) => number,
  ): Generator<Walked<FoundFrame | FoundRecord | Gap>> {
    for (const segment of this.#segments.slice(this.#segments.indexOf(this.holding(seq)))) {
      const walker = segment.walk(seq, keepingOf?.(segment));
      let noted = walker.at;
      for (let item = walker.next(); item !== null; item = walker.next()) {
        if (item.kind !== 'gap' && item.at - noted > NOTE_EVERY) {
          const { at, upto } = item;
          segment.noteAt({ seq: item.kind === 'frame' ? item.firstSeq : item.seq, at, upto });
          noted = at;
        }
        yield { item, walker, segment };
      }
    }
  }

  /** The records at and after a seq, whole or not. */
  *records(seq: number, keepingOf?: (segment: Segment) => number): Generator<Walked<FoundRecord>> {
    for (const walked of this.items(seq, keepingOf))
      if (walked.item.kind === 'record' && walked.item.seq >= seq) yield walked as Walked<FoundRecord>;
  }

  close(): void {
    for (const segment of this.#segments) segment.close();
  }
}
