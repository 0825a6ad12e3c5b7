import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { MillraceError } from '../../core/errors.ts';
import { AppendFile } from '../../lib/append-file.ts';
import { isMissing, readPlain } from '../../lib/durable.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { writeDurably } from '../../lib/new-file.ts';
import { jsonIn } from '../../lib/parsed.ts';
import { holeIn } from '../../lib/tail.ts';
import type { TaskResult, TaskRows } from './fetch-task.ts';
import type { Task } from './plan.ts';

/** Bytes from which on another segment is begun. */
const LARGEST = 32 * 1024 * 1024;
/** Bytes of rows of a task from which on they are appended before it is finished. */
const PIECE = 1024 * 1024;
const LINE_FEED = 10;

/** A line before rows of a task. It names the user, so that an erasure removes it with them. */
interface Head {
  readonly task: number;
  readonly user_id: string;
  /** The rows are of this attempt, or kept from an earlier run. */
  readonly of: string;
  /** Bytes of the rows of each file, in this order. */
  readonly bytes: Readonly<Record<string, number>>;
  /** In the last piece of an attempt that succeeded. */
  readonly result?: TaskResult;
  /** CRC-32 of the other members and the rows. */
  readonly sum: number;
}

interface Open {
  readonly file: AppendFile;
  readonly segment: number;
  end: number;
}

interface Piece {
  readonly head: Head;
  readonly segment: number;
  /** Offsets of the head, of the rows, and of what follows. */
  readonly start: number;
  readonly from: number;
  readonly end: number;
}

/** Keeps the number of segments. */
type Note = (count: number) => Promise<void>;

/** Rows of files that are not appended yet. */
type Rows = Map<string, Buffer[]>;

/**
 * The rows that a run has fetched, in files that grow at their ends. A task is finished once the piece with its result is on disk; tasks
 * that finish at the same time share a sync. The first line of a segment names no user, so that an erasure leaves it.
 */
export class Segments {
  readonly #folder: string;
  readonly #note: Note;
  readonly #pieces = new Map<string, Piece[]>();
  readonly #finished = new Map<number, Head>();
  #open: Promise<Open>;

  private constructor(folder: string, note: Note, open: Open) {
    [this.#folder, this.#note, this.#open] = [folder, note, Promise.resolve(open)];
  }

  /**
   * @param count of segments, as `note` was called with it last
   * @param onCut called when a write that was not acknowledged is cut off
   * @throws MillraceError rows_missing when a segment is missing or damaged
   */
  static async open(
    folder: string,
    count: number,
    note: Note,
    onCut: (path: string, bytes: number) => void,
  ): Promise<Segments> {
    const pieces: Piece[] = [];
    let end = 0;
    for (let segment = 0; segment < count; segment += 1) {
      const read = await readSegment(folder, segment, count);
      for (const piece of read.pieces) pieces.push(piece);
      end = read.end;
    }
    if (count === 0) return new Segments(folder, note, await create(folder, note, 0));
    const file = new AppendFile(join(folder, nameOf(count - 1)), end);
    const segments = new Segments(folder, note, { file, segment: count - 1, end });
    for (const piece of pieces) segments.#add(piece);
    const cut = await file.mend();
    if (cut > 0) onCut(file.path, cut);
    return segments;
  }

  /** Removes the rows of some users. @throws as `open` */
  static async forget(folder: string, count: number, isGone: (user: string) => boolean): Promise<void> {
    for (let segment = 0; segment < count; segment += 1) {
      const { bytes, pieces, end } = await readSegment(folder, segment, count);
      const left = pieces.filter(({ head }) => !isGone(head.user_id));
      if (left.length === pieces.length && end === bytes.length) continue;
      const rows = left.map((piece) => bytes.subarray(piece.start, piece.end));
      await writeDurably(folder, nameOf(segment), Buffer.concat([firstLine(segment), ...rows]));
    }
  }

  /** The result of a task that was finished by this or an earlier run. */
  result(task: number): TaskResult | undefined {
    return this.#finished.get(task)?.result;
  }

  /** Begins an attempt at a task; what it writes counts once it is finished. */
  begin(task: Pick<Task, 'index' | 'user'>): Attempt {
    const of = randomBytes(6).toString('hex');
    return new Attempt((rows, result) => this.append(task, of, rows, result));
  }

  /** Appends rows, which are on disk once it resolves. @param of the attempt, or the rows that are kept */
  async append(
    { index, user }: Pick<Task, 'index' | 'user'>,
    of: string,
    rows: Rows,
    result?: TaskResult,
  ): Promise<void> {
    const texts = [...rows.values()].flat();
    const bytes = Object.fromEntries(Array.from(rows, ([name, some]) => [name, sizeOf(some)]));
    const about = { task: index, user_id: user, of, bytes, ...(result && { result }) };
    const head = { ...about, sum: sumOf(about, texts) };
    const line = Buffer.from(`${JSON.stringify(head)}\n`);
    for (;;) {
      const opened = this.#open;
      const open = await opened;
      if (open.end < LARGEST) {
        const [start, from] = [open.end, open.end + line.length];
        open.end = from + sizeOf(texts);
        const piece = { head, segment: open.segment, start, from, end: open.end };
        await open.file.append(line, ...texts);
        return this.#add(piece);
      }
      // Another call may have begun the next one.
      if (this.#open === opened)
        this.#open = open.file.close().then(() => create(this.#folder, this.#note, open.segment + 1));
    }
  }

  /**
   * Hands over the rows of a task, in order, each buffer until `take` resolves.
   * @param of what was kept under that name; without it, what was fetched
   * @throws MillraceError rows_missing
   */
  async read(task: number, take: TaskRows['write'], of = this.#finished.get(task)?.of): Promise<void> {
    for (const { segment, head, from, end } of this.#pieces.get(`${task} ${of}`) ?? []) {
      const path = join(this.#folder, nameOf(segment));
      const rows = Buffer.concat(await Array.fromAsync(readPlain(path, end, from)));
      if (!isWhole(head, rows)) throw missing(path, this.#folder, `is damaged at byte ${from}`);
      let at = 0;
      for (const [name, bytes] of Object.entries(head.bytes))
        await take(name, rows.subarray(at, (at += bytes)));
    }
  }

  /** The error for rows that should be there. */
  lacking(what: string): MillraceError {
    return missing(this.#folder, this.#folder, what);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A call that needed a segment which could not be made has thrown why.
    await (await this.#open.catch(() => null))?.file.close();
  }

  #add(piece: Piece): void {
    const { task, of, result } = piece.head;
    getOrMake(this.#pieces, `${task} ${of}`, () => []).push(piece);
    if (result !== undefined) this.#finished.set(task, piece.head);
  }
}

/** One attempt at a task; without `finish` its rows do not count. */
class Attempt implements TaskRows {
  readonly #append: (rows: Rows, result?: TaskResult) => Promise<void>;
  #rows: Rows = new Map();
  #bytes = 0;

  constructor(append: (rows: Rows, result?: TaskResult) => Promise<void>) {
    this.#append = append;
  }

  async write(name: string, rows: Buffer): Promise<void> {
    // A copy: the buffer is filled again.
    this.#add(name, Buffer.from(rows));
    if (this.#bytes >= PIECE) await this.finish();
  }

  reject(line: string): void {
    this.#add('_rejects', Buffer.from(`${line}\n`));
  }

  #add(name: string, rows: Buffer): void {
    getOrMake(this.#rows, name, () => []).push(rows);
    this.#bytes += rows.length;
  }

  /** With its result the task is finished once it resolves. */
  finish(result?: TaskResult): Promise<void> {
    const rows = this.#rows;
    [this.#rows, this.#bytes] = [new Map(), 0];
    return this.#append(rows, result);
  }
}

async function create(folder: string, note: Note, segment: number): Promise<Open> {
  const file = new AppendFile(join(folder, nameOf(segment)), 0);
  // Of a run that was killed before it noted it, and wrote no rows to it.
  await rm(file.path, { force: true });
  await file.create();
  await file.append(firstLine(segment));
  await note(segment + 1);
  return { file, segment, end: file.length };
}

function nameOf(segment: number): string {
  return `segment-${String(segment).padStart(6, '0')}.ndjson`;
}

export function isSegment(name: string): boolean {
  return /^segment-\d+\.ndjson$/.test(name);
}

function firstLine(segment: number): Buffer {
  return Buffer.from(`${JSON.stringify({ segment })}\n`);
}

function sizeOf(texts: readonly Buffer[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}

function sumOf(about: Omit<Head, 'sum'>, rows: readonly Buffer[]): number {
  return rows.reduce((sum, some) => crc32(some, sum), crc32(JSON.stringify(about)));
}

/**
 * The pieces of a segment, and where they end: behind that may be, in the last segment, a write that was not acknowledged.
 * @throws MillraceError rows_missing
 */
async function readSegment(
  folder: string,
  segment: number,
  count: number,
): Promise<{ readonly bytes: Buffer; readonly pieces: readonly Piece[]; readonly end: number }> {
  const path = join(folder, nameOf(segment));
  const bytes = await readFile(path).catch((error: unknown) => {
    throw isMissing(error) ? missing(path, folder, 'is not there') : error;
  });
  const first = firstLine(segment);
  if (bytes.indexOf(first) !== 0) throw missing(path, folder, 'is damaged at its beginning');
  const pieces: Piece[] = [];
  let start = first.length;
  while (start < bytes.length) {
    const from = bytes.indexOf(LINE_FEED, start) + 1;
    const head = from === 0 ? null : (jsonIn(bytes.toString('utf8', start, from)) as Head | null);
    const end = Object.values(head?.bytes ?? {}).reduce((sum, size) => sum + size, from);
    const isCut = from === 0 || end > bytes.length;
    if (head !== null && !isCut && isWhole(head, bytes.subarray(from, end)))
      pieces.push({ head, segment, start, from, end });
    else if (segment + 1 === count && (isCut || holeIn(bytes.subarray(start), start) !== -1)) break;
    else throw missing(path, folder, `is damaged at byte ${start}`);
    start = end;
  }
  return { bytes, pieces, end: start };
}

function isWhole({ sum, ...about }: Head, rows: Buffer): boolean {
  return sumOf(about, [rows]) === sum;
}

/** @param path of a segment, or the folder of all */
function missing(path: string, folder: string, what: string): MillraceError {
  const how = `remove ${dirname(folder)} to fetch all of them again`;
  return new MillraceError('rows_missing', `${path} ${what}, and has rows that were fetched; ${how}`);
}
