import type Database from 'better-sqlite3';
import type { EventHead, JournalAccount } from '../core/journal.ts';
import type { Handling } from '../core/event.ts';
import type { Checkpoints } from './checkpoints.ts';
import { HourCounts } from './hour-counts.ts';

const STARTED = 'sink-started/';
/** Heads of one answer: a few milliseconds of the writer thread. */
const PAGE = 2000;

type HeadRow = [seq: number, id: string, type: string, receivedAt: number, handling: string | null];

/** Reads what a reconciliation needs: heads without bodies, and the counts. */
export class LedgerReader {
  readonly #db: Database.Database;
  readonly #checkpoints: Checkpoints;
  readonly #heads;
  readonly counts: HourCounts;

  constructor(db: Database.Database, checkpoints: Checkpoints) {
    this.#db = db;
    this.#checkpoints = checkpoints;
    this.counts = new HourCounts(db);
    // The columns in front of the body only: what a body has overflowed into is not touched.
    this.#heads = db
      .prepare('SELECT seq, id, type, received_at, handling FROM events WHERE seq > ? ORDER BY seq LIMIT ?')
      .raw();
  }

  /** Heads of the events after `seq`, as many as an answer should hold. */
  heads(after: number): EventHead[] {
    return (this.#heads.all(after, PAGE) as HeadRow[]).map(([seq, id, type, receivedAt, text]) => {
      const handling = text === null ? {} : (JSON.parse(text) as Handling & { erased?: boolean });
      return {
        seq,
        id,
        type,
        receivedAt,
        only: handling.only ?? null,
        replayed: handling.replayId !== undefined,
        erased: handling.erased === true,
      };
    });
  }

  /** Remembers where a sink that is new begins: it never gets what came before. */
  sinkStarted(sink: string, seq: number): void {
    if (this.#checkpoints.load(STARTED + sink) === null) this.#checkpoints.save(STARTED + sink, String(seq));
  }

  sinkForgotten(sink: string): void {
    this.#checkpoints.remove(STARTED + sink);
  }

  sinkRenamed(from: string, to: string): void {
    this.#db.prepare('UPDATE checkpoints SET key = ? WHERE key = ?').run(STARTED + to, STARTED + from);
  }

  /** All but the positions, which the store knows. */
  account(since: number, until: number): Omit<JournalAccount, 'lastSeq' | 'firstSeq' | 'cursors' | 'routes'> {
    const started = this.#db
      .prepare(
        `SELECT substr(key, ${STARTED.length + 1}), CAST(value AS INTEGER) FROM checkpoints WHERE key GLOB ?`,
      )
      .raw()
      .all(`${STARTED}*`) as [string, number][];
    const dropped = this.#db
      .prepare('SELECT id, sink FROM dropped_letters WHERE received_at >= ? AND received_at < ?')
      .all(since, until) as JournalAccount['dropped'];
    const first = this.#db.prepare('SELECT min(hour) FROM hour_counts').pluck().get() as number | null;
    return {
      counts: this.counts.read(since, until),
      countedSince: first === null ? null : first * 3_600_000,
      started,
      dropped,
    };
  }
}
