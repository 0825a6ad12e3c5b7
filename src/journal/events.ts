import { randomInt } from 'node:crypto';
import type Database from 'better-sqlite3';
import type { JournalAccount } from '../core/journal.ts';
import type { Checkpoints } from './checkpoints.ts';
import { HourCounts, HourTally, type FrameCounts } from './hour-counts.ts';
import type { AsideTable } from './schema.ts';
import { SegmentLog, type Frame } from './segments/log.ts';
import type { Position } from './segments/recovery.ts';
import { firstSeqOf, saltOf, segmentsIn } from './segments/segment.ts';
import type { Transactions } from './transactions.ts';

/** What the parts of a store work on. */
export interface StoreBase {
  readonly db: Database.Database;
  readonly transactions: Transactions;
  readonly checkpoints: Checkpoints;
  readonly events: Events;
}

/** Rows set aside whose events a frame appends again. The frame is written first, then the rows are deleted. */
export interface ReappendedRows {
  readonly table: AsideTable;
  readonly keys: readonly number[];
  /** Seq of the newest event before the frame. */
  readonly after: number;
}

/** What a frame says about rows of the database. */
export interface RowNote {
  readonly consumed?: ReappendedRows;
  /** Keys quarantined just before the frame, which has their entries for the log of receipts. */
  readonly entered?: readonly number[];
  /** Highest key quarantined before the frame: the second place, beside the database, that says it was acknowledged. */
  readonly kept?: number;
}

/** JSON in the head of a frame. */
interface FrameNote extends RowNote {
  readonly counted: FrameCounts;
}

/** What frames have said and the database does not. */
interface Unsaved {
  /** Appended again, and not yet deleted. */
  readonly consumed: ReappendedRows[];
  readonly entered: number[];
}

/** What the database knows of the segments: JSON in the checkpoint `SEGMENTS`. */
export interface KnownSegments {
  readonly salt: number;
  readonly position: Position | null;
  /** Names in order. One that has no file was lost. */
  readonly segments: readonly string[];
}

export const SEGMENTS = 'segments';

/**
 * The events in their segments, and what the frames say besides: counts, and rows to delete. That is kept in memory and written to
 * the database together with the position up to which it is there; a start reads it again from that position. So a commit is one
 * write and one sync.
 */
export class Events {
  readonly #checkpoints: Checkpoints;
  readonly #transactions: Transactions;
  readonly #salt: number;
  readonly log: SegmentLog;
  readonly counts: HourCounts;
  /** Counts that are not in the database yet. */
  readonly tally = new HourTally();
  #unsaved: Unsaved | null = null;
  #kept = 0;
  #saved: readonly string[];
  /** Segments that the database knows and that have no file. */
  readonly lost: readonly LostSegment[];

  constructor(
    { db, transactions, checkpoints }: Omit<StoreBase, 'events'>,
    path: string,
    segmentBytes: number,
  ) {
    this.#checkpoints = checkpoints;
    this.#transactions = transactions;
    this.counts = new HourCounts(db);
    const text = checkpoints.load(SEGMENTS);
    const known = text === null ? null : (JSON.parse(text) as KnownSegments);
    this.#salt = known?.salt ?? saltOf(path, segmentsIn(path)) ?? randomInt(1, 2 ** 32);
    this.#saved = known?.segments ?? [];
    // No seq at or before a cursor is given again.
    const least = Number(db.prepare('SELECT max(seq) FROM cursors').pluck().get() ?? 0);
    const position = known?.position ?? null;
    const options = { folder: path, salt: this.#salt, segmentBytes, position, least };
    const notes: FrameNote[] = [];
    this.log = new SegmentLog(options, ({ note }) => notes.push(JSON.parse(note) as FrameNote));
    for (const note of notes) this.#hear(note);
    this.lost = lostSegments(this.#saved, this.log);
  }

  /** What the database does not say yet, besides counts; null when no frame was added since the last `save`. */
  get unsaved(): Unsaved | null {
    return this.#unsaved;
  }

  /** Highest key of a quarantined event that a frame after the position names; 0 for none. */
  get kept(): number {
    return this.#kept;
  }

  /** True when the database does not know the newest segment. */
  get hasRolled(): boolean {
    return this.log.segments.at(-1)?.name !== this.#saved.at(-1);
  }

  /** @throws MillraceError journal_full; then nothing was appended */
  append(frame: Frame, { counts }: HourTally, now: number, rows: RowNote = {}): void {
    const note: FrameNote = { counted: counts, ...rows };
    this.log.append(frame, JSON.stringify(note), now);
    this.#hear(note);
  }

  #hear({ counted, consumed, entered = [], kept = 0 }: FrameNote): void {
    this.#unsaved ??= { consumed: [], entered: [] };
    this.tally.addAll(counted);
    if (consumed !== undefined) this.#unsaved.consumed.push(consumed);
    this.#unsaved.entered.push(...entered);
    this.#kept = Math.max(this.#kept, kept);
  }

  /** The counts of a span of time, and the first hour ever counted. @param since and `until`: milliseconds since the epoch */
  counted(since: number, until: number): Pick<JournalAccount, 'counts' | 'countedSince'> {
    return {
      counts: this.counts.read(since, until, this.tally),
      countedSince: this.counts.first(this.tally),
    };
  }

  /** Writes the counts and the position, inside the transaction that deletes the consumed rows. */
  save(): void {
    this.counts.save(this.tally);
    this.savePosition(this.log.position);
    this.#transactions.afterCommit(() => {
      this.#unsaved = null;
      this.tally.clear();
    });
  }

  /** Writes up to where the frames' notes are in the database. Inside a transaction. */
  savePosition(position: Position): void {
    const segments = this.log.segments.map(({ name }) => name).filter((name) => name >= position.oldest);
    const known: KnownSegments = { salt: this.#salt, position, segments };
    this.#checkpoints.save(SEGMENTS, JSON.stringify(known));
    this.#transactions.afterCommit(() => (this.#saved = segments));
  }
}

/** A segment without its file, and the number of events it must have held; 0 for an empty one. */
export interface LostSegment {
  readonly name: string;
  readonly firstSeq: number;
  readonly count: number;
  /** It was being written; it may have held events after those that are counted. */
  readonly isNewest: boolean;
}

function lostSegments(known: readonly string[], log: SegmentLog): LostSegment[] {
  const there = new Set(log.segments.map(({ name }) => name));
  // A segment made in its place has the name of the next seq.
  const all = [...new Set(known).union(there)].toSorted();
  return known
    .filter((name) => !there.has(name))
    .map((name) => {
      const next = all[all.indexOf(name) + 1];
      const firstSeq = firstSeqOf(name);
      const end = next === undefined ? log.lastSeq + 1 : firstSeqOf(next);
      return { name, firstSeq, count: Math.max(0, end - firstSeq), isNewest: name === known.at(-1) };
    });
}
