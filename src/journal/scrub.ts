import type Database from 'better-sqlite3';
import type { Transactions } from './transactions.ts';

/** A database up to this size is rebuilt in a few seconds, which senders do not notice. */
const REBUILD_BYTES = 256 * 2 ** 20;
/** Free pages overwritten in one transaction. */
const SCRUB_PAGES = 2000;

/** Takes out of the journal's database what is left of rows that are not there any more. */
export class Scrubber {
  readonly #db: Database.Database;
  readonly #transactions: Transactions;
  readonly #rebuildBytes: number;
  #heldBytes = 0;

  /** @param rebuildBytes size up to which the database is rebuilt while deliveries wait; above, free pages are written over */
  constructor(db: Database.Database, transactions: Transactions, rebuildBytes = REBUILD_BYTES) {
    this.#db = db;
    this.#transactions = transactions;
    this.#rebuildBytes = rebuildBytes;
    // Left by a process that was ended in the middle.
    db.exec('DROP TABLE IF EXISTS scrub');
  }

  /** Bytes of free pages that are taken up for the moment: as good as free to whoever asks how full the journal is. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Leaves no old copy of a row in the file: rebuilds it, or, where that would hold up deliveries for long, writes over
   * the free pages. Then empties the log that has the pages as they were. True when there is more to do.
   */
  scrub(alone: boolean): boolean {
    const pages = Number(this.#db.pragma('page_count', { simple: true }));
    const pageSize = Number(this.#db.pragma('page_size', { simple: true }));
    const rebuilt = (alone || pages * pageSize <= this.#rebuildBytes) && this.#rebuild();
    const more = !rebuilt && this.#overwriteFree(pageSize);
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
    return more;
  }

  /** False when the disk has no room for it. */
  #rebuild(): boolean {
    try {
      this.#db.exec('VACUUM');
      return true;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'SQLITE_FULL') return false;
      throw error;
    }
  }

  /** Takes up free pages with zeros, a slice at a time, and gives all of them back when there is none left. */
  #overwriteFree(pageSize: number): boolean {
    const free = (): number => Number(this.#db.pragma('freelist_count', { simple: true }));
    const before = free();
    const more = this.#transactions.run(() => {
      this.#db.exec('CREATE TABLE IF NOT EXISTS scrub (zeros BLOB NOT NULL)');
      const insert = this.#db.prepare('INSERT INTO scrub VALUES (zeroblob(?))');
      const bulk = Math.min(before, SCRUB_PAGES) - SINGLY;
      if (bulk > 0) insert.run(bulk * (pageSize - OVERFLOW_LINK));
      if (free() > SINGLY) return true;
      // The last ones page by page, to the very last: the file may grow by a page or two, of zeros.
      while (free() > 0) insert.run(pageSize - ROW_OVERHEAD);
      this.#db.exec('DROP TABLE scrub');
      return false;
    });
    this.#heldBytes = more ? this.#heldBytes + (before - free()) * pageSize : 0;
    return more;
  }
}

/** Free pages that are taken up one by one: the table needs some for itself. */
const SINGLY = 8;
/** Bytes of an overflow page that are not content. */
const OVERFLOW_LINK = 4;
/** Bytes of a page that a row which has it for itself leaves free. */
const ROW_OVERHEAD = 100;
