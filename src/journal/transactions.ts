import type Database from 'better-sqlite3';
import { MillraceError } from '../core/errors.ts';
import { sqliteCode } from './sqlite-errors.ts';

/** Milliseconds without another try after the disk was full. */
const FULL_PAUSE = 500;

/** What is written, to the database or to the segments, and whether there was room for it. */
export class Transactions {
  readonly #db: Database.Database;
  readonly #begin;
  readonly #commit;
  /** When the disk was last found full, milliseconds since the epoch. */
  #fullAt = Number.NEGATIVE_INFINITY;

  constructor(db: Database.Database) {
    this.#db = db;
    // Prepared once: to compile them takes longer than to run them.
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
  }

  /** All of it or nothing, on disk when this returns. */
  run<T>(work: () => T): T {
    return this.noticingFull(0, () => {
      this.#begin.run();
      try {
        const value = work();
        this.#commit.run();
        return value;
      } catch (error) {
        if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
        throw error;
      }
    });
  }

  /**
   * Syncs nothing of what `run` does meanwhile, which can be made again from what is on disk: after a power cut (not a kill) it may be
   * missing. A sync is most of what a small transaction costs, and commits would wait for it.
   */
  unsynced<T>(work: () => T): T {
    this.#db.pragma('synchronous = NORMAL');
    try {
      return work();
    } finally {
      this.#db.pragma('synchronous = FULL');
    }
  }

  /** A full disk is asked again now and then, not by each of a thousand requests a second. */
  noticingFull<T>(now: number, work: () => T): T {
    try {
      return work();
    } catch (error) {
      const isFull =
        sqliteCode(error) === 'SQLITE_FULL' ||
        (error instanceof MillraceError && error.code === 'journal_full');
      if (isFull) this.#fullAt = now;
      throw error;
    }
  }

  /** Whether that was so short a time ago that nothing is tried. A clock that was put back says nothing of the disk. */
  isPausing(now: number): boolean {
    return now >= this.#fullAt && now < this.#fullAt + FULL_PAUSE;
  }
}
