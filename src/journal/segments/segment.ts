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
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { errorCode, OWNER_ONLY, syncFolderNow } from '../../lib/durable.ts';
import { SEGMENT_HEADER, decodeSegmentHeader, encodeSegmentHeader, type SegmentHeader } from './format.ts';
import { nextFrame, readFully, Walker, type FoundFrame } from './walker.ts';

// Windows has neither flag.
const NO_FOLLOW = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
/** Bytes between two points of the index. */
const SPARSE = 64 * 1024;

/** Where a frame or a record begins: from here on everything is at or after `seq`. */
export interface Point {
  readonly seq: number;
  readonly at: number;
  readonly upto: number;
}

/** A file of frames, which grows at its end while it is the newest. `size` bytes of it are durable, or were found so. */
export class Segment {
  readonly name: string;
  readonly path: string;
  readonly header: SegmentHeader;
  /** Its header was not what was written. */
  readonly isDamaged: boolean;
  #fd: number | null;
  /** In order, never nearer to each other than `SPARSE`; filled in by whoever walks through. */
  readonly #points: Point[];
  #size: number;

  private constructor(
    folder: string,
    name: string,
    fd: number,
    header: SegmentHeader,
    size: number,
    isDamaged = false,
  ) {
    this.isDamaged = isDamaged;
    this.name = name;
    this.path = join(folder, name);
    this.header = header;
    this.#fd = fd;
    this.#size = size;
    this.#points = [{ seq: header.firstSeq, at: SEGMENT_HEADER, upto: header.upto }];
  }

  /** Makes the file; its name and its header are durable when it returns. */
  static create(folder: string, header: SegmentHeader): Segment {
    const name = nameOf(header);
    const path = join(folder, name);
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
    return new Segment(folder, name, fd, header, SEGMENT_HEADER);
  }

  /**
   * A header that is damaged is taken from the name and the time of the file, and `isDamaged` says so.
   * @param salt of the journal
   * @throws MillraceError journal_unreadable when it is another journal's
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
    return new Segment(folder, name, fd, header, Math.max(size, SEGMENT_HEADER), found === null);
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
   * @throws MillraceError journal_full, and all is as it was; anything else means that what is on disk is not known
   */
  append(parts: readonly Uint8Array[], point: Omit<Point, 'at'>): void {
    const fd = this.#open;
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    unlessShort(
      this.path,
      () => writeFully(fd, parts, this.#size),
      () => ftruncateSync(fd, this.#size),
    );
    fdatasyncSync(fd);
    this.noteAt({ ...point, at: this.#size });
    this.#size += bytes;
  }

  /** Writes over bytes that are there; durable with the next `sync`. */
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

  /** Cuts off what lies behind the last frame that counts, and makes sure of the rest. */
  cut(size: number): void {
    if (size < this.#size) ftruncateSync(this.#open, size);
    this.#size = size;
    fsyncSync(this.#open);
  }

  /** From the last point at or before a seq. @param keeping as the walker takes it */
  walk(seq: number, keeping?: number): Walker {
    const { at, upto } = this.#points[Math.max(0, this.#after(seq) - 1)] as Point;
    return this.walkFrom(at, upto, keeping);
  }

  /** @param at where an item begins */
  walkFrom(at: number, upto: number, keeping?: number): Walker {
    return new Walker({ fd: this.#open, salt: this.header.salt, end: this.#size, at, upto, keeping });
  }

  /** The first sound frame at or after `at` whose number is above `number`; null when there is none. */
  nextFrame(at: number, number: number): FoundFrame | null {
    let found = nextFrame(this.#open, at, this.#size, this.header.salt);
    while (found !== null && found.number <= number)
      found = nextFrame(this.#open, found.at + 1, this.#size, this.header.salt);
    return found;
  }

  /** Remembers where an item begins, for who looks for it later. */
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

/** @throws MillraceError journal_unreadable for what is no plain file */
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

/** Names sort as their segments do. */
function nameOf({ firstSeq, firstFrame }: Pick<SegmentHeader, 'firstSeq' | 'firstFrame'>): string {
  const [seq, frame] = [firstSeq, firstFrame].map((n) => String(n).padStart(16, '0'));
  return `events-${seq}-${frame}.seg`;
}

/** Null when it is no segment's name. */
function partsOf(name: string): { readonly firstSeq: number; readonly firstFrame: number } | null {
  const found = NAME.exec(name);
  return found === null ? null : { firstSeq: Number(found[1]), firstFrame: Number(found[2]) };
}

export function firstSeqOf(name: string): number {
  return partsOf(name)?.firstSeq ?? 0;
}

/** Of the first of these segments that says it; null when none does. */
export function saltOf(folder: string, names: readonly string[]): number | null {
  for (const name of names) {
    const fd = openSync(join(folder, name), constants.O_RDONLY | NO_FOLLOW);
    const header = headerIn(fd);
    closeSync(fd);
    if (header !== null) return header.salt;
  }
  return null;
}

export function headerIn(fd: number): SegmentHeader | null {
  const bytes = Buffer.alloc(SEGMENT_HEADER);
  return readFully(fd, bytes, 0) < SEGMENT_HEADER ? null : decodeSegmentHeader(bytes);
}

const NO_SPACE: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);
const NO_FILES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);

/** A full disk and too many open files are states that pass: what was begun is taken back, and it is told as such. */
export function unlessShort<T>(path: string, write: () => T, takeBack?: () => void): T {
  try {
    return write();
  } catch (error) {
    const code = errorCode(error);
    const isFull = NO_SPACE.has(code);
    if (!isFull && !NO_FILES.has(code)) throw error;
    takeBack?.();
    const detail = isFull
      ? `no space left for ${path}`
      : `too many open files for ${path}: raise ulimit -n (LimitNOFILE= of the service)`;
    throw new MillraceError('journal_full', detail, { cause: error });
  }
}

function writeFully(fd: number, parts: readonly Uint8Array[], at: number): void {
  let left = parts.filter(({ length }) => length > 0);
  let done = at;
  while (left.length > 0) {
    let written = writevSync(fd, left, done);
    done += written;
    while (left[0] !== undefined && written >= left[0].length) {
      written -= left[0].length;
      left = left.slice(1);
    }
    if (left[0] !== undefined && written > 0) left = [left[0].subarray(written), ...left.slice(1)];
  }
}
