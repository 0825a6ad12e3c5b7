import { syncFolderNow } from '../../lib/durable.ts';
import { encodeFrameHead, finishRecord, type EventHashes, type RecordParts } from './format.ts';
import { recover, type End, type Position } from './recovery.ts';
import { firstSeqOf, Segment, segmentsIn, unlessShort } from './segment.ts';
import type { FoundFrame, FoundRecord, Gap, Walker } from './walker.ts';

/** An item of the log, and the walker that found it, which can check and load all of a record. */
export interface Visited<T> {
  readonly item: T;
  readonly walker: Walker;
  readonly segment: Segment;
}

/** Bytes between two points that a walk notes. */
const NOTE_EVERY = 64 * 1024;

export interface LogOptions {
  readonly folder: string;
  readonly salt: number;
  /** Bytes after which a new segment begins. */
  readonly segmentBytes: number;
  /** Null for a journal without a segment. */
  readonly position: Position | null;
  /** Events get seqs above this one. */
  readonly least: number;
}

/**
 * The events in segments: appended at the end, removed from the front by whole segments, without gaps in their seqs. After an error
 * of `append` other than journal_full it must not be used any more.
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

  /** @param onFrame called with each frame after the position, in order */
  constructor(
    { folder, salt, segmentBytes, position, least }: LogOptions,
    onFrame: (frame: FoundFrame) => void,
  ) {
    this.#folder = folder;
    this.#segmentBytes = segmentBytes;
    this.salt = salt;
    const kept: Segment[] = [];
    this.#segments = kept;
    for (const name of segmentsIn(folder)) {
      const segment = Segment.open(folder, name, salt);
      if (name < (position?.oldest ?? '')) segment.remove();
      else kept.push(segment);
    }
    const end = recover(kept, position, onFrame);
    // Without its header and without an event it is as good as lost.
    if (kept.at(-1)?.isDamaged === true && this.#newest.header.firstSeq > end.lastSeq) kept.pop()?.remove();
    const isLost = position !== null && (kept.at(-1)?.name ?? '') < position.segment;
    // The last events of a lost segment were noted nowhere: one seq stands for them, and is not given again.
    const lost = isLost ? firstSeqOf(position.segment) : 0;
    this.#end = { ...end, lastSeq: Math.max(end.lastSeq, least, lost) };
    const newest = kept.at(-1);
    // Syncs frames that were found and may not be on disk.
    newest?.cut(newest.size);
    const isShort = position !== null && newest?.name === position.segment && newest.size < position.at;
    if (newest === undefined || isLost || isShort || newest.isDamaged || this.#end.lastSeq > end.lastSeq)
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

  /** The oldest seq still kept; one past the newest when none is. */
  get firstSeq(): number {
    return Math.min(this.lastSeq + 1, this.#segments[0]?.header.firstSeq ?? Infinity);
  }

  /** Body bytes of all events that ever were. */
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

  /** The position once the oldest segment is removed. */
  get positionAfterRemoval(): Position {
    return { ...this.position, oldest: this.#segments[1]?.name ?? this.position.oldest };
  }

  get #newest(): Segment {
    return this.#segments.at(-1) as Segment;
  }

  newFrame(): Frame {
    return new Frame(this.lastSeq, this.salt);
  }

  /**
   * Writes a frame; it is on disk when this returns.
   * @param note JSON, given to `onFrame` by the start after a crash
   * @throws MillraceError journal_full; then nothing was written
   */
  append(frame: Frame, note: string, now: number): void {
    if (this.#newest.size >= this.#segmentBytes) this.roll();
    const { lastSeq, upto, youngest } = this.#end;
    const { count, size, bodyBytes, pieces } = frame;
    const number = this.#end.frame + 1;
    const firstSeq = lastSeq + 1;
    const head = encodeFrameHead({ number, firstSeq, count, size, upto, writtenAt: now, note }, this.salt);
    this.#newest.append([head, ...pieces], { seq: firstSeq, upto });
    this.#begunAt ??= now;
    this.#end = {
      frame: number,
      lastSeq: lastSeq + count,
      upto: upto + bodyBytes,
      youngest: Math.max(youngest, frame.youngest),
    };
  }

  /** Begins a new segment. @throws MillraceError journal_full; then nothing has changed */
  roll(): void {
    const { salt } = this;
    const { lastSeq, frame, upto, youngest } = this.#end;
    const header = { salt, firstSeq: lastSeq + 1, firstFrame: frame + 1, upto, youngestBefore: youngest };
    this.#segments.push(Segment.create(this.#folder, header));
    this.#end = { ...this.#end, youngest: 0 };
    this.#begunAt = null;
  }

  /** True when the newest segment has events, and got its first frame before a time. */
  isDue(before: number): boolean {
    return this.#newest.header.firstSeq <= this.lastSeq && (this.#begunAt ?? 0) < before;
  }

  /** True when all events before the newest segment are at or before a seq. */
  isNewestNext(upTo: number): boolean {
    return this.#newest.header.firstSeq - 1 <= upTo;
  }

  /**
   * The last seq of the oldest segment, if its events are all at or before `upTo` and were received before a time; otherwise null.
   * The newest segment is never removable.
   */
  removableUpTo(upTo: number, before = Infinity): number | null {
    const next = this.#segments[1]?.header;
    if (next === undefined || next.firstSeq - 1 > upTo || next.youngestBefore >= before) return null;
    return next.firstSeq - 1;
  }

  removeOldest(): void {
    this.#segments.shift()?.remove();
    // A file that is there again after a crash is older than the position, and is removed at the next start.
    unlessShort(this.#folder, () => syncFolderNow(this.#folder));
  }

  /** The segment with a seq, or the next one that is kept. */
  holding(seq: number): Segment {
    const next = this.#segments.findIndex(({ header }) => header.firstSeq > seq);
    return this.#segments[next === -1 ? this.#segments.length - 1 : Math.max(0, next - 1)] as Segment;
  }

  /**
   * All items from the last known point before a seq on. The first records may come without their frame.
   * @param chunk bytes read at once
   */
  *items(seq: number, chunk?: number): Generator<Visited<FoundFrame | FoundRecord | Gap>, undefined> {
    for (const segment of this.#segments.slice(this.#segments.indexOf(this.holding(seq)))) {
      const walker = segment.walk(seq, chunk);
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

  /** The records from a seq on, damaged ones among them. */
  *records(seq: number, chunk?: number): Generator<Visited<FoundRecord>, undefined> {
    for (const visited of this.items(seq, chunk))
      if (visited.item.kind === 'record' && visited.item.seq >= seq) yield visited as Visited<FoundRecord>;
  }

  close(): void {
    for (const segment of this.#segments) segment.close();
  }
}

/** The records of one commit, gathered without a copy. */
export class Frame {
  readonly #salt: number;
  readonly pieces: Buffer[] = [];
  /** Buffer of the last piece, and where the piece ends in it. */
  #source: Buffer | null = null;
  #end = -1;
  readonly #firstSeq: number;
  count = 0;
  size = 0;
  bodyBytes = 0;
  /** When the youngest event was received, milliseconds since the epoch. */
  youngest = 0;

  constructor(lastSeq: number, salt: number) {
    this.#firstSeq = lastSeq + 1;
    this.#salt = salt;
  }

  get nextSeq(): number {
    return this.#firstSeq + this.count;
  }

  /** Adds the record at `at`, and completes its header. @returns its seq */
  add(bytes: Buffer, at: number, parts: RecordParts, id: EventHashes): number {
    const seq = this.nextSeq;
    finishRecord(bytes, at, parts, seq, id, this.#salt);
    const { size, bodyBytes, receivedAt } = parts;
    const last = this.pieces.length - 1;
    // Adjacent records are written as one piece.
    if (bytes === this.#source && at === this.#end) {
      const from = at - (this.pieces[last] as Buffer).length;
      this.pieces[last] = bytes.subarray(from, at + size);
    } else this.pieces.push(bytes.subarray(at, at + size));
    this.#source = bytes;
    this.#end = at + size;
    this.count += 1;
    this.size += size;
    this.bodyBytes += bodyBytes;
    this.youngest = Math.max(this.youngest, receivedAt);
    return seq;
  }
}
