import type Database from 'better-sqlite3';
import { isDiskFull } from './sqlite-errors.ts';

/** Milliseconds without another append after the disk was full. */
const FULL_PAUSE = 500;

/** Transactions of the journal's database, and the pause after a full disk. */
export class Transactions {
  readonly #db: Database.Database;
  readonly #begin;
  readonly #commit;
  #afterCommit: (() => void)[] = [];
  /** When an append last found the disk full, milliseconds since the epoch. */
  #fullAt = Number.NEGATIVE_INFINITY;

  constructor(db: Database.Database) {
    this.#db = db;
    // Prepared once: compiling them takes longer than running them.
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
  }

  /** Commits all of the work or nothing; it is on disk when this returns. */
  run<T>(work: () => T): T {
    this.#begin.run();
    let value: T;
    try {
      value = work();
      this.#commit.run();
    } catch (error) {
      this.#afterCommit = [];
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
    for (const apply of this.#afterCommit.splice(0)) apply();
    return value;
  }

  /** Inside `run`: calls back once the transaction is committed, to make memory equal to the database. */
  afterCommit(apply: () => void): void {
    this.#afterCommit.push(apply);
  }

  /**
   * Commits the transactions of `work` without a sync, for what can be made again from the segments: a power cut may lose it, a
   * kill does not. The sync is most of the cost of a small transaction, and appends would wait for it.
   */
  unsynced<T>(work: () => T): T {
    this.#db.pragma('synchronous = NORMAL');
    try {
      return work();
    } finally {
      this.#db.pragma('synchronous = FULL');
    }
  }

  /** Remembers a full disk, so that it is tried again every 500 ms and not by each of a thousand requests a second. */
  noticingFull<T>(now: number, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (isDiskFull(error)) this.#fullAt = now;
      throw error;
    }
  }

  /** True shortly after an append found the disk full; false when the clock was set back since. */
  isPausing(now: number): boolean {
    return now >= this.#fullAt && now < this.#fullAt + FULL_PAUSE;
  }
}
