import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { canonicalId } from '../../core/named-ids.ts';
import { errorCode } from '../../lib/durable.ts';
import { RECORD_HEADER } from '../segments/format.ts';
import { textsAt } from '../segments/records.ts';
import { firstSeqOf, headerIn, NO_FOLLOW, saltOf, segmentsIn } from '../segments/segment.ts';
import { type FoundRecord, Walker } from '../segments/walker.ts';
import type { Chunk, Row } from './chunk.ts';

/** Items between two checks of the clock. */
const AT_ONCE = 256;
/** Bytes read for one event. */
const ONE = 4096;

/** How far to read, and for how long. */
export interface ReadLimits {
  /** The newest committed event. */
  readonly lastSeq: number;
  /** True for the segment that is being written. */
  readonly isLast: boolean;
  /** A time of `performance.now()`. */
  readonly end: number;
}

/** A segment opened for reading, which another thread may be writing. */
export class SegmentReader {
  readonly firstSeq: number;
  readonly #path: string;
  readonly #fd: number;
  readonly #salt: number;

  private constructor(path: string, fd: number, salt: number, firstSeq: number) {
    this.#path = path;
    this.#fd = fd;
    this.#salt = salt;
    this.firstSeq = firstSeq;
  }

  /**
   * Null for a segment that was removed. Behind a damaged header it reads what the journal serves.
   * @throws Error when it cannot be opened; MillraceError journal_unreadable when no segment has an undamaged header
   */
  static open(folder: string, name: string): SegmentReader | null {
    const path = join(folder, name);
    let fd: number;
    try {
      fd = openSync(path, constants.O_RDONLY | NO_FOLLOW);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null;
      throw error;
    }
    const salt = headerIn(fd)?.salt ?? saltOf(folder, segmentsIn(folder));
    if (salt !== null) return new SegmentReader(path, fd, salt, firstSeqOf(name));
    closeSync(fd);
    throw new MillraceError('journal_unreadable', `${path}: its header is damaged, as those of all segments`);
  }

  close(): void {
    closeSync(this.#fd);
  }

  /**
   * Reads the heads of events into a chunk until it is full, the time is over, or no committed event is left.
   * @param at where an item begins
   * @returns where the next item begins, and the seq up to which all is read; 0 when there is more
   * @throws MillraceError journal_unreadable when the newest segment ends before its last committed event
   */
  fill(
    chunk: Chunk,
    at: number,
    seed: number,
    { lastSeq, isLast, end }: ReadLimits,
  ): { readonly at: number; readonly doneTo: number } {
    const walker = this.#walker(at);
    let next = at;
    /** True behind damaged bytes; events up to the last one may be among them. */
    let isBehindGap = false;
    /** Where the last frame ends. */
    let frameEnd = at;
    for (let n = 1; !chunk.isFull; n += 1) {
      if (n % AT_ONCE === 0 && performance.now() > end) return { at: next, doneTo: 0 };
      // Bytes behind the last commit are being written now, and are no damage.
      const isCommitted = !isLast || chunk.nextSeq <= lastSeq;
      const item = isCommitted ? walker.next() : walker.sound();
      if (item === null) {
        const isShort = isLast && isCommitted && (!isBehindGap || frameEnd > walker.at);
        if (isShort)
          throw new MillraceError(
            'journal_unreadable',
            `${this.#path} ends before event ${chunk.nextSeq}; the journal has ${lastSeq}`,
          );
        return { at: next, doneTo: isLast ? lastSeq : Infinity };
      }
      isBehindGap = item.kind === 'gap';
      if (item.kind === 'frame') frameEnd = item.at + item.headSize + item.size;
      if (item.kind === 'record') {
        if (item.seq > lastSeq) return { at: next, doneTo: lastSeq };
        // Events missing in between are damaged.
        while (chunk.nextSeq < item.seq && !chunk.isFull) chunk.push(null);
        if (chunk.isFull) return { at: next, doneTo: 0 };
        if (item.seq === chunk.nextSeq) chunk.push(rowOf(item, walker, seed));
      }
      // Read again from damaged bytes on, or what ends in them would look short.
      if (!isBehindGap) next = walker.at;
    }
    return { at: next, doneTo: 0 };
  }

  /** The record at an offset; null when it is another one, erased or damaged. */
  recordAt(at: number, seq: number): FoundRecord | null {
    const walker = this.#walker(at, ONE);
    const item = walker.sound();
    if (item?.kind !== 'record' || item.seq !== seq || item.erased) return null;
    const record = walker.whole(item);
    return walker.isWhole(record) ? record : null;
  }

  /** When the frame of a record was written; 0 when it begins before `from`. @param from where an item begins */
  writtenAt(from: number, seq: number): number {
    const walker = this.#walker(from);
    let writtenAt = 0;
    for (let item = walker.next(); item !== null; item = walker.next()) {
      if (item.kind === 'frame') ({ writtenAt } = item);
      if (item.kind === 'record' && item.seq >= seq) break;
    }
    return writtenAt;
  }

  #walker(at: number, chunk?: number): Walker {
    const { size: end } = fstatSync(this.#fd);
    return new Walker({ fd: this.#fd, salt: this.#salt, end, at, upto: 0, chunk });
  }
}

/** Null for an erased or damaged event. */
function rowOf(item: FoundRecord, walker: Walker, seed: number): Row | null {
  if (item.erased) return null;
  const { bytes, pos } = walker.whole(item, RECORD_HEADER + item.identityBytes + item.headBytes);
  try {
    const { id, head } = textsAt(bytes, pos, item);
    const [type, , user, clientUser, , handling] = head;
    return {
      id: hashOf(seed, id),
      user: hashOfUser(seed, user),
      clientUser: hashOfUser(seed, clientUser),
      type,
      isExplicit: handling?.only !== undefined,
      second: Math.floor(item.receivedAt / 1000),
      at: item.at,
    };
  } catch {
    return null;
  }
}

export function hashOfUser(seed: number, user: string | null): number {
  return hashOf(seed, user === null ? null : canonicalId(user));
}

/** 0 for null only. */
export function hashOf(seed: number, text: string | null): number {
  if (text === null) return 0;
  let hash = seed;
  for (let at = 0; at < text.length; at += 1)
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193) ^ (hash >>> 15);
  // All bits have to depend on all of the text.
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb_352d);
  return (hash ^ (hash >>> 15)) >>> 0 || 1;
}
