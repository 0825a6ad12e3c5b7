import type Database from 'better-sqlite3';
import { errorCode } from '../lib/durable.ts';
import type { Transactions } from './transactions.ts';

/** A database up to this size is rebuilt in a few seconds, which senders do not notice. */
const REBUILD_BYTES = 256 * 2 ** 20;
/** Free pages overwritten in one transaction. */
const SCRUB_PAGES = 2000;
/** Free pages that are taken one by one, because the table needs some for itself. */
const SINGLY = 8;
/** Bytes of an overflow page that are not content. */
const OVERFLOW_LINK = 4;
/** Bytes left free in a page that one row has for itself. */
const ROW_OVERHEAD = 100;

/** Overwrites what is left of deleted rows in the journal's database. */
export class Scrubber {
  readonly #db: Database.Database;
  readonly #transactions: Transactions;
  readonly #rebuildBytes: number;
  #heldBytes = 0;

  /** @param rebuildBytes size up to which the database is rebuilt while deliveries wait; above it, free pages are overwritten */
  constructor(db: Database.Database, transactions: Transactions, rebuildBytes = REBUILD_BYTES) {
    this.#db = db;
    this.#transactions = transactions;
    this.#rebuildBytes = rebuildBytes;
    // Left by a process that ended in between.
    db.exec('DROP TABLE IF EXISTS scrub');
  }

  /** Bytes of free pages that are taken for the moment; they do not count as used. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Rebuilds the file, or, where that would hold up deliveries for long, overwrites its free pages. Then empties the write-ahead log,
   * which has old pages.
   * @param alone true when no deliveries wait
   * @returns whether there is more to do
   */
  scrub(alone: boolean): boolean {
    const pages = Number(this.#db.pragma('page_count', { simple: true }));
    const pageSize = Number(this.#db.pragma('page_size', { simple: true }));
    const isRebuilt = (alone || pages * pageSize <= this.#rebuildBytes) && this.#rebuild();
    const isMore = !isRebuilt && this.#overwriteFree(pageSize);
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
    return isMore;
  }

  /** @returns false when the disk has no room for it */
  #rebuild(): boolean {
    try {
      this.#db.exec('VACUUM');
      return true;
    } catch (error) {
      if (errorCode(error) === 'SQLITE_FULL') return false;
      throw error;
    }
  }

  /** Fills free pages with zeros, a slice at a time, and frees all of them when there are no more. */
  #overwriteFree(pageSize: number): boolean {
    const free = (): number => Number(this.#db.pragma('freelist_count', { simple: true }));
    const before = free();
    const isMore = this.#transactions.run(() => {
      this.#db.exec('CREATE TABLE IF NOT EXISTS scrub (zeros BLOB NOT NULL)');
      const insert = this.#db.prepare('INSERT INTO scrub VALUES (zeroblob(?))');
      const bulk = Math.min(before, SCRUB_PAGES) - SINGLY;
      if (bulk > 0) insert.run(bulk * (pageSize - OVERFLOW_LINK));
      if (free() > SINGLY) return true;
      // The last pages one by one; the file may grow by a page or two of zeros.
      while (free() > 0) insert.run(pageSize - ROW_OVERHEAD);
      this.#db.exec('DROP TABLE scrub');
      return false;
    });
    this.#heldBytes = isMore ? this.#heldBytes + (before - free()) * pageSize : 0;
    return isMore;
  }
}
