import type Database from 'better-sqlite3';
import type { Ahead } from '../core/journal.ts';

/** What sinks have settled ahead of their cursors. All of it inside transactions of who changes the cursors. */
export class SettledAhead {
  readonly #db: Database.Database;
  readonly #note;
  readonly #passed;

  constructor(db: Database.Database) {
    this.#db = db;
    this.#note = db.prepare('INSERT OR REPLACE INTO settled_ahead VALUES (?, ?)');
    this.#passed = db.prepare('DELETE FROM died_ahead WHERE sink = ? AND seq <= ?');
  }

  read(sink: string): Ahead {
    const note = this.#db.prepare('SELECT note FROM settled_ahead WHERE sink = ?').pluck().get(sink);
    const died = this.#db.prepare('SELECT destination, seq FROM died_ahead WHERE sink = ?').raw().all(sink);
    return { note: (note ?? null) as string | null, died: died as [string | null, number][] };
  }

  note(sink: string, note: string | null): void {
    if (note === null) this.#db.prepare('DELETE FROM settled_ahead WHERE sink = ?').run(sink);
    else this.#note.run(sink, note);
  }

  /** The cursor is past all up to a seq. */
  passed(sink: string, seq: number): void {
    this.#passed.run(sink, seq);
  }

  forget(sink: string): void {
    this.note(sink, null);
    this.passed(sink, Number.MAX_SAFE_INTEGER);
  }

  sinkRenamed(from: string, to: string): void {
    for (const table of ['settled_ahead', 'died_ahead'])
      this.#db.prepare(`UPDATE OR REPLACE ${table} SET sink = ? WHERE sink = ?`).run(to, from);
  }
}
