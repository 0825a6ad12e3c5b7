import { randomInt } from 'node:crypto';
import type Database from 'better-sqlite3';
import type { HourCount } from '../core/journal.ts';
import type { Checkpoints } from './checkpoints.ts';
import { HourCounts, Tally, type Counted } from './hour-counts.ts';
import type { Frame } from './segments/frame.ts';
import { SegmentLog } from './segments/log.ts';
import type { Position } from './segments/recovery.ts';
import { firstSeqOf, saltOf, segmentsIn } from './segments/segment.ts';
import type { Transactions } from './transactions.ts';

/** What the parts of a store work on. */
export interface Base {
  readonly db: Database.Database;
  readonly transactions: Transactions;
  readonly checkpoints: Checkpoints;
  readonly events: Events;
}

/** Rows that an event's frame puts back into the journal proper: the frame is written first, then they go. */
export interface Consumed {
  readonly table: 'quarantine' | 'dead_letters';
  readonly keys: readonly number[];
  /** The newest event before the frame. */
  readonly after: number;
}

/** What a frame says beside its events: JSON, in its head. */
interface Note extends Told {
  readonly counted: Counted;
}

export interface Told {
  readonly consumed?: Consumed;
  /** Keys of what was quarantined before the frame, and has its entry for the log of receipts in it. */
  readonly entered?: readonly number[];
  /** The highest key of what was quarantined before the frame: the only other place that says that it was acknowledged. */
  readonly kept?: number;
}

interface Unsaved {
  /** Written, and not gone from the database yet. */
  readonly consumed: Consumed[];
  /** Quarantined, with an entry in the segments; the database does not say so yet. */
  readonly entered: number[];
}

/** What the database knows of the segments. */
export interface KnownSegments {
  readonly salt: number;
  readonly position: Position | null;
  /** Names, in order: one of these that is not there was lost. */
  readonly segments: readonly string[];
}

/** Under which the database has what it knows of the segments. */
export const SEGMENTS = 'segments';

export interface EventsOptions {
  readonly path: string;
  readonly segmentBytes: number;
  /** No event gets a seq up to this one; that of the farthest cursor when left out. */
  readonly least?: number;
}

/**
 * The events, in their segments, and what their frames say beside them: counts, and rows that are to go. That is kept in
 * memory, and written to the database together with the position up to which it is; an opening reads it again from there
 * on, so that a commit is one write and one sync.
 */
export class Events {
  readonly #checkpoints: Checkpoints;
  readonly #salt: number;
  readonly log: SegmentLog;
  readonly counts: HourCounts;
  /** Counts that are not in the database yet. */
  readonly tally = new Tally();
  #unsaved: Unsaved | null = null;
  #kept = 0;
  #saved: readonly string[];
  /** Segments that should be there and are not. */
  readonly gone: readonly GoneSegment[];

  constructor(db: Database.Database, checkpoints: Checkpoints, { path, segmentBytes, least }: EventsOptions) {
    this.#checkpoints = checkpoints;
    this.counts = new HourCounts(db);
    const text = checkpoints.load(SEGMENTS);
    const known = text === null ? null : (JSON.parse(text) as KnownSegments);
    this.#salt = known?.salt ?? saltOf(path, segmentsIn(path)) ?? randomInt(1, 2 ** 32);
    this.#saved = known?.segments ?? [];
    const cursors = Number(db.prepare('SELECT max(seq) FROM cursors').pluck().get() ?? 0);
    const position = known?.position ?? null;
    const options = { folder: path, salt: this.#salt, segmentBytes, position, least: least ?? cursors };
    this.log = new SegmentLog(options, ({ note }) => this.#hear(JSON.parse(note) as Note));
    this.gone = goneOf(this.#saved, this.log);
  }

  get lastSeq(): number {
    return this.log.lastSeq;
  }

  get firstSeq(): number {
    return this.log.firstSeq;
  }

  /** What frames have said, beside counts, and is not in the database yet; null when they have said nothing. */
  get unsaved(): Unsaved | null {
    return this.#unsaved;
  }

  /** The highest key of a quarantined event that a frame has named since the position; 0 for none. */
  get kept(): number {
    return this.#kept;
  }

  /** Whether there is a segment that the database does not know. */
  get hasRolled(): boolean {
    return this.log.segments.at(-1)?.name !== this.#saved.at(-1);
  }

  newFrame(): Frame {
    return this.log.newFrame();
  }

  /** @throws MillraceError journal_full, and all is as it was */
  append(frame: Frame, { counted }: Tally, now: number, told: Told = {}): void {
    const note: Note = { counted, ...told };
    this.log.append(frame, JSON.stringify(note), now);
    this.#hear(note);
  }

  #hear({ counted, consumed, entered = [], kept = 0 }: Note): void {
    this.#unsaved ??= { consumed: [], entered: [] };
    this.tally.addAll(counted);
    if (consumed !== undefined) this.#unsaved.consumed.push(consumed);
    this.#unsaved.entered.push(...entered);
    this.#kept = Math.max(this.#kept, kept);
  }

  /** The counts of a span of time, and the first hour that was ever counted. @param since and `until`: milliseconds since the epoch */
  counted(
    since: number,
    until: number,
  ): { readonly counts: readonly HourCount[]; readonly countedSince: number | null } {
    return {
      counts: this.counts.read(since, until, this.tally),
      countedSince: this.counts.first(this.tally),
    };
  }

  /** Writes what the frames have said. Inside the transaction that takes the consumed rows out. @returns to be called after it */
  save(): () => void {
    this.counts.save(this.tally);
    this.savePosition(this.log.position);
    return () => {
      this.#unsaved = null;
      this.tally.clear();
    };
  }

  /** Up to where the frames have been heard. Inside a transaction. */
  savePosition(position: Position): void {
    const segments = this.log.segments.map(({ name }) => name).filter((name) => name >= position.oldest);
    this.#saved = segments;
    this.#checkpoints.save(
      SEGMENTS,
      JSON.stringify({ salt: this.#salt, position, segments } satisfies KnownSegments),
    );
  }
}

/** A segment that should be there and is not, and the events that it must have held; `count` is 0 where it had none. */
export interface GoneSegment {
  readonly name: string;
  readonly firstSeq: number;
  readonly count: number;
  /** It was being written to: what came last was not noted elsewhere. */
  readonly isNewest: boolean;
}

function goneOf(known: readonly string[], log: SegmentLog): GoneSegment[] {
  const there = new Set(log.segments.map(({ name }) => name));
  // A segment that was begun for want of another takes the name of the next seq.
  const all = [...new Set([...known, ...there])].toSorted();
  return known
    .filter((name) => !there.has(name))
    .map((name) => {
      const next = all[all.indexOf(name) + 1];
      const firstSeq = firstSeqOf(name);
      const end = next === undefined ? log.lastSeq + 1 : firstSeqOf(next);
      return { name, firstSeq, count: Math.max(0, end - firstSeq), isNewest: name === known.at(-1) };
    });
}
