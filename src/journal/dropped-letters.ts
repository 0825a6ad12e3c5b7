import { randomBytes } from 'node:crypto';
import type Database from 'better-sqlite3';
import { hashedId } from '../core/hashed-id.ts';
import type { JournalAccount } from '../core/journal.ts';
import type { Checkpoints } from './checkpoints.ts';

const KEY = 'dropped-letters/key';

/**
 * What a person dropped, so that it never counts as lost: by hashes of the ids, for whose they are is not known any more when a
 * user is erased.
 */
export class DroppedLetters {
  readonly #db: Database.Database;
  readonly #checkpoints: Checkpoints;
  #key: string | null = null;

  constructor(db: Database.Database, checkpoints: Checkpoints) {
    this.#db = db;
    this.#checkpoints = checkpoints;
    db.function('hashed_id', (id) => hashedId(this.#key ?? '', String(id)));
  }

  /** Rows of a table that are about to be deleted. Inside a transaction. @param sink SQL @param where SQL, with `values` */
  note(table: string, sink: string, where: string, values: readonly unknown[]): void {
    this.#haveKey();
    this.#db
      .prepare(
        `INSERT OR IGNORE INTO dropped_letters SELECT ${sink}, hashed_id(id), received_at FROM ${table} ${where}`,
      )
      .run(...values);
  }

  #haveKey(): void {
    // A key that was made in a transaction that came to nothing is none.
    this.#key = this.#checkpoints.load(KEY);
    if (this.#key !== null) return;
    this.#key = randomBytes(32).toString('hex');
    this.#checkpoints.save(KEY, this.#key);
  }

  /** Inside a transaction. */
  sinkRenamed(from: string, to: string): void {
    this.#db.prepare('UPDATE OR REPLACE dropped_letters SET sink = ? WHERE sink = ?').run(to, from);
  }

  /** Of a span of time, milliseconds since the epoch. */
  read(since: number, until: number): Pick<JournalAccount, 'dropped' | 'droppedKey'> {
    const dropped = this.#db
      .prepare('SELECT id, sink FROM dropped_letters WHERE received_at >= ? AND received_at < ?')
      .all(since, until) as JournalAccount['dropped'];
    const key = this.#checkpoints.load(KEY);
    return { dropped, ...(key === null ? {} : { droppedKey: key }) };
  }
}
