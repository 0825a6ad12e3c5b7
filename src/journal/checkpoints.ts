import type Database from 'better-sqlite3';

/** Small texts by key: how far sources have read, and the journal's own state. */
export class Checkpoints {
  readonly #select;
  readonly #upsert;
  readonly #delete;

  constructor(db: Database.Database) {
    this.#select = db.prepare('SELECT value FROM checkpoints WHERE key = ?').pluck();
    this.#upsert = db.prepare(
      'INSERT INTO checkpoints VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    );
    this.#delete = db.prepare('DELETE FROM checkpoints WHERE key = ?');
  }

  load(key: string): string | null {
    const value = this.#select.get(key);
    return typeof value === 'string' ? value : null;
  }

  save(key: string, value: string): void {
    this.#upsert.run(key, value);
  }

  remove(key: string): void {
    this.#delete.run(key);
  }
}
