import {
  closeSync,
  constants,
  fchmodSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  unlinkSync,
  writeSync,
  writevSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { errorCode, OWNER_ONLY, syncFolderNow } from '../../lib/durable.ts';
import { SEGMENT_HEADER, decodeSegmentHeader, encodeSegmentHeader, type SegmentHeader } from './format.ts';
import { nextFrame, readFully, Walker, type FoundFrame } from './walker.ts';

// Windows has neither flag.
export const NO_FOLLOW = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
/** Bytes between two points of the index. */
const SPARSE = 64 * 1024;

/** Where an item begins; from there on all items are at or after `seq`. */
export interface Point {
  readonly seq: number;
  readonly at: number;
  readonly upto: number;
}

/** A file of frames, which grows at its end while it is the newest. `size` bytes of it are durable, or were found at start. */
export class Segment {
  readonly name: string;
  readonly path: string;
  readonly header: SegmentHeader;
  /** Its header is damaged. */
  readonly isDamaged: boolean;
  #fd: number | null;
  /** A sparse index, in order: points are at least `SPARSE` bytes apart. Walks add to it. */
  readonly #points: Point[];
  #size: number;

  private constructor(path: string, fd: number, header: SegmentHeader, size: number, isDamaged = false) {
    this.isDamaged = isDamaged;
    this.name = basename(path);
    this.path = path;
    this.header = header;
    this.#fd = fd;
    this.#size = size;
    this.#points = [{ seq: header.firstSeq, at: SEGMENT_HEADER, upto: header.upto }];
  }

  /** Makes the file; its name and its header are durable when it returns. */
  static create(folder: string, header: SegmentHeader): Segment {
    const path = join(folder, nameOf(header));
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW;
    const fd = unlessShort(path, () => openSync(path, flags, OWNER_ONLY));
    unlessShort(
      path,
      () => {
        writeSync(fd, encodeSegmentHeader(header), 0, SEGMENT_HEADER, 0);
        fsyncSync(fd);
        syncFolderNow(folder);
      },
      () => {
        closeSync(fd);
        unlinkSync(path);
      },
    );
    return new Segment(path, fd, header, SEGMENT_HEADER);
  }

  /**
   * A damaged header is replaced by what the file's name and time say, and `isDamaged` is true.
   * @throws MillraceError journal_unreadable when the salt is that of another journal
   */
  static open(folder: string, name: string, salt: number): Segment {
    const path = join(folder, name);
    const fd = openSync(path, constants.O_RDWR | NO_FOLLOW);
    const { size, mode, mtimeMs } = fstatSync(fd);
    if ((mode & 0o077) !== 0) fchmodSync(fd, OWNER_ONLY);
    const found = headerIn(fd);
    const header = found ?? {
      ...(partsOf(name) as { firstSeq: number; firstFrame: number }),
      salt,
      upto: 0,
      youngestBefore: mtimeMs,
    };
    if (header.salt !== salt) {
      closeSync(fd);
      throw new MillraceError('journal_unreadable', `${path} belongs to another journal`);
    }
    return new Segment(path, fd, header, Math.max(size, SEGMENT_HEADER), found === null);
  }

  get size(): number {
    return this.#size;
  }

  get #open(): number {
    if (this.#fd === null) throw new Error(`${this.name} is closed`);
    return this.#fd;
  }

  /**
   * Adds a frame; it is on disk when this returns.
   * @throws MillraceError journal_full; then nothing was written. After any other error the content of the file is unknown
   */
  append(parts: readonly Uint8Array[], point: Omit<Point, 'at'>): void {
    const fd = this.#open;
    const bytes = unlessShort(
      this.path,
      () => writeFully(fd, parts, this.#size),
      () => ftruncateSync(fd, this.#size),
    );
    fdatasyncSync(fd);
    this.noteAt({ ...point, at: this.#size });
    this.#size += bytes;
  }

  /** Durable with the next `sync`. */
  overwrite(bytes: Uint8Array, at: number): void {
    writeFully(this.#open, [bytes], at);
  }

  read(at: number, size: number): Buffer {
    const bytes = Buffer.allocUnsafe(size);
    return bytes.subarray(0, readFully(this.#open, bytes, at));
  }

  sync(): void {
    fdatasyncSync(this.#open);
  }

  /** Cuts off what is behind `size`, and syncs the rest. */
  cut(size: number): void {
    if (size < this.#size) ftruncateSync(this.#open, size);
    this.#size = size;
    fsyncSync(this.#open);
  }

  /** Walks from the last point at or before a seq. @param chunk bytes read at once */
  walk(seq: number, chunk?: number): Walker {
    const { at, upto } = this.#points[Math.max(0, this.#after(seq) - 1)] as Point;
    return this.walkFrom(at, upto, chunk);
  }

  /** @param at where an item begins */
  walkFrom(at: number, upto: number, chunk?: number): Walker {
    return new Walker({ fd: this.#open, salt: this.header.salt, end: this.#size, at, upto, chunk });
  }

  /** The first undamaged frame at or after `at` with a number above `number`; null when there is none. */
  nextFrame(at: number, number: number): FoundFrame | null {
    return nextFrame(this.#open, { at, end: this.#size, salt: this.header.salt }, number);
  }

  /** Adds where an item begins to the index. */
  noteAt(point: Point): void {
    const index = this.#after(point.seq);
    const before = this.#points[index - 1];
    const after = this.#points[index];
    if (before !== undefined && point.at - before.at < SPARSE) return;
    if (after !== undefined && after.at - point.at < SPARSE) return;
    this.#points.splice(index, 0, point);
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  remove(): void {
    this.close();
    unlinkSync(this.path);
  }

  /** Index of the first point behind a seq. */
  #after(seq: number): number {
    let low = 0;
    let high = this.#points.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#points[middle] as Point).seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Names of the segments, in order. @throws MillraceError journal_unreadable for one that is not a plain file */
export function segmentsIn(folder: string): string[] {
  const names = readdirSync(folder)
    .filter((name) => partsOf(name) !== null)
    .toSorted();
  for (const name of names) {
    if (lstatSync(join(folder, name)).isFile()) continue;
    throw new MillraceError(
      'journal_unreadable',
      `${join(folder, name)} is not a plain file; it is not followed`,
    );
  }
  return names;
}

const NAME = /^events-(\d{16})-(\d{16})\.seg$/;

/** Names sort like their segments. */
function nameOf({ firstSeq, firstFrame }: Pick<SegmentHeader, 'firstSeq' | 'firstFrame'>): string {
  const [seq, frame] = [firstSeq, firstFrame].map((n) => String(n).padStart(16, '0'));
  return `events-${seq}-${frame}.seg`;
}

/** Null for other names. */
function partsOf(name: string): { readonly firstSeq: number; readonly firstFrame: number } | null {
  const found = NAME.exec(name);
  return found === null ? null : { firstSeq: Number(found[1]), firstFrame: Number(found[2]) };
}

export function firstSeqOf(name: string): number {
  return partsOf(name)?.firstSeq ?? 0;
}

/** The journal's salt, from the first undamaged header of these segments; null without one. */
export function saltOf(folder: string, names: readonly string[]): number | null {
  for (const name of names) {
    const fd = openSync(join(folder, name), constants.O_RDONLY | NO_FOLLOW);
    const header = headerIn(fd);
    closeSync(fd);
    if (header !== null) return header.salt;
  }
  return null;
}

/** Null when it is damaged. */
export function headerIn(fd: number): SegmentHeader | null {
  const bytes = Buffer.alloc(SEGMENT_HEADER);
  return readFully(fd, bytes, 0) < SEGMENT_HEADER ? null : decodeSegmentHeader(bytes);
}

const NO_SPACE: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);
const NO_FILES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);

/** @throws MillraceError journal_full on a full disk or with too many open files, which are states that pass, after `undo` */
export function unlessShort<T>(path: string, write: () => T, undo?: () => void): T {
  try {
    return write();
  } catch (error) {
    const code = errorCode(error);
    const isFull = NO_SPACE.has(code);
    if (!isFull && !NO_FILES.has(code)) throw error;
    undo?.();
    const detail = isFull
      ? `the disk is full: no space left for ${path}`
      : `too many open files for ${path}: raise ulimit -n (LimitNOFILE= of the service)`;
    throw new MillraceError('journal_full', detail, { cause: error });
  }
}

const EMPTY = Buffer.alloc(0);

/** @returns the number of bytes */
function writeFully(fd: number, parts: readonly Uint8Array[], at: number): number {
  const size = parts.reduce((sum, { length }) => sum + length, 0);
  let done = writevSync(fd, parts, at);
  const bytes = done < size ? Buffer.concat(parts) : EMPTY;
  while (done < size) done += writeSync(fd, bytes, done, size - done, at + done);
  return size;
}
