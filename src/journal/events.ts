import type Database from 'better-sqlite3';
import type { CursorStatus } from '../core/journal.ts';
import { EVENT_COLUMNS } from './database.ts';
import { checksumOf, type EventRow } from './rows.ts';

/** Events cleared away in one transaction. */
const PURGE = 1000;

/** Where the events end; reset when a transaction fails. */
export interface End {
  readonly lastSeq: number;
  /** Sum of the body bytes of all events that ever were. */
  readonly upto: number;
}

/**
 * The events themselves. They are appended at the end and cleared away from the front, without holes, so that positions
 * can be counted by subtraction.
 */
export class Events {
  readonly #db: Database.Database;
  readonly #insert;
  end: End;

  constructor(db: Database.Database) {
    this.#db = db;
    const places = EVENT_COLUMNS.split(',').fill('?').join();
    this.#insert = db.prepare(`INSERT INTO events (upto, crc, ${EVENT_COLUMNS}) VALUES (?, ?, ${places})`);
    const one = (sql: string): number => Number(db.prepare(sql).pluck().get() ?? 0);
    this.end = {
      lastSeq: one(`SELECT max(seq) FROM sqlite_sequence WHERE name = 'events'`),
      upto: one('SELECT upto FROM events ORDER BY seq DESC LIMIT 1'),
    };
  }

  get lastSeq(): number {
    return this.end.lastSeq;
  }

  /** The oldest seq still held; one past the newest when none is. */
  get firstSeq(): number {
    return Number(this.#db.prepare('SELECT min(seq) FROM events').pluck().get() ?? this.lastSeq + 1);
  }

  /** @returns its seq */
  put(row: EventRow, body: Buffer): number {
    const upto = this.end.upto + body.length;
    const lastSeq = Number(this.#insert.run(upto, checksumOf(row, body), ...row, body).lastInsertRowid);
    this.end = { lastSeq, upto };
    return lastSeq;
  }

  /**
   * Clears away some that are settled, and received before a time if one is given.
   * @param upTo the newest seq that may go
   * @returns how many are gone, and whether there may be more
   */
  clear(upTo: number, before = Infinity): { readonly count: number; readonly more: boolean } {
    const old = this.#db
      .prepare('SELECT seq, received_at FROM events WHERE seq <= ? ORDER BY seq LIMIT ?')
      .raw()
      .all(upTo, PURGE) as [seq: number, receivedAt: number][];
    const young = old.findIndex(([, receivedAt]) => receivedAt >= before);
    const count = young === -1 ? old.length : young;
    const last = old[count - 1];
    if (last !== undefined) this.#db.prepare('DELETE FROM events WHERE seq <= ?').run(last[0]);
    return { count, more: count > 0 && old.length === PURGE };
  }

  /** What waits behind a cursor. */
  behind(sink: string, seq: number, now: number): CursorStatus {
    const next = this.#db
      .prepare('SELECT upto - length(body), received_at FROM events WHERE seq > ? ORDER BY seq LIMIT 1')
      .raw()
      .get(seq) as [before: number, at: number] | undefined;
    if (next === undefined) return { sink, seq, backlog: 0, backlogBytes: 0, backlogAge: 0 };
    const [before, at] = next;
    return {
      sink,
      seq,
      backlog: this.lastSeq - Math.max(seq, this.firstSeq - 1),
      backlogBytes: this.end.upto - before,
      backlogAge: Math.max(0, now - at),
    };
  }
}
