import { closeSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { MillraceError, messageOf } from '../core/errors.ts';
import { errorCode } from '../lib/durable.ts';
import { own, type FileLock } from '../lib/file-lock.ts';
import type { Shelf, State } from './state.ts';

const VERSION = 1;
const DDL = `CREATE TABLE IF NOT EXISTS documents (
  shelf TEXT NOT NULL,
  id TEXT NOT NULL,
  document TEXT NOT NULL,
  UNIQUE (shelf, id)
)`;

/** Shelves of the file's own. */
const SERIES = 'series';
const ORIGIN = 'origin';
const CLOCK = 'clock';

/** Ends the name of the lock beside the file. */
const LOCK = '-lock';

/**
 * State in a SQLite file, made when it is missing. A commit survives the end of the process, however it comes; one that
 * the machine's end follows at once can be lost. What is deleted or replaced is overwritten. One process at a time.
 * @throws MillraceError state_unusable, folder_in_use
 */
export async function openStateFile(file: string): Promise<State> {
  let db: Database.Database | null = null;
  let lock: FileLock | null = null;
  try {
    const owned = await own(`${file}${LOCK}`);
    if (typeof owned === 'string') throw new MillraceError('folder_in_use', `${file} is written by ${owned}`);
    lock = owned;
    // It holds keys: nobody else is to read it.
    closeSync(openSync(file, 'a', 0o600));
    db = new Database(file, { timeout: 0 });
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('journal_mode = WAL');
    db.exec('BEGIN IMMEDIATE; COMMIT');
    const version = Number(db.pragma('user_version', { simple: true }));
    if (version > VERSION) throw new Error(`it was written by a newer millrace (format ${version})`);
    if (version === 0 && db.prepare('SELECT 1 FROM sqlite_schema').get() !== undefined)
      throw new Error('it is a database of something else');
    db.exec(`BEGIN; ${DDL}; PRAGMA user_version = ${VERSION}; COMMIT`);
    db.pragma('secure_delete = ON');
    return new StateFile(db, file, lock);
  } catch (error) {
    db?.close();
    lock?.release('remove');
    throw unusable(file, error);
  }
}

class StateFile implements State {
  readonly resumed: boolean;
  readonly time: number | null;
  readonly #db: Database.Database;
  readonly #file: string;
  readonly #lock: FileLock;
  /** Since the last commit: shelf and id → document; null deletes it. */
  readonly #pending = new Map<string, { shelf: string; id: string; document: string | null }>();
  readonly #series: Map<string, number>;
  readonly #write: (now: number) => void;

  constructor(db: Database.Database, file: string, lock: FileLock) {
    this.#db = db;
    this.#lock = lock;
    this.#file = file;
    const [time] = this.shelf<number>(CLOCK).all();
    this.time = time ?? null;
    this.resumed = this.time !== null;
    this.#series = new Map(this.shelf<[string, number]>(SERIES).all());
    const put = db.prepare(
      'INSERT INTO documents VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET document = excluded.document',
    );
    const remove = db.prepare('DELETE FROM documents WHERE shelf = ? AND id = ?');
    this.#write = db.transaction((now: number) => {
      for (const { shelf, id, document } of this.#pending.values()) {
        if (document === null) remove.run(shelf, id);
        else put.run(shelf, id, document);
      }
      put.run(CLOCK, '', JSON.stringify(now));
    });
  }

  shelf<T>(name: string): Shelf<T> {
    const put = (id: string | number, document: string | null): void => {
      this.#pending.set(`${name} ${id}`, { shelf: name, id: String(id), document });
    };
    const db = this.#db;
    return {
      put: (id, document) => put(id, JSON.stringify(document)),
      delete: (id) => put(id, null),
      all: () => {
        const rows = db.prepare<[string], { document: string }>(
          'SELECT document FROM documents WHERE shelf = ? ORDER BY rowid',
        );
        return rows.all(name).map(({ document }) => JSON.parse(document) as T);
      },
    };
  }

  next(series: string): number {
    const number = (this.#series.get(series) ?? 0) + 1;
    this.#series.set(series, number);
    this.shelf<[string, number]>(SERIES).put(series, [series, number]);
    return number;
  }

  claim(origin: Readonly<Record<string, string>>): void {
    const shelf = this.shelf<Readonly<Record<string, string>>>(ORIGIN);
    const [known] = shelf.all();
    if (known === undefined) return shelf.put('', origin);
    const other = Object.keys(origin).filter((name) => origin[name] !== known[name]);
    if (other.length === 0) return;
    const told = other.map((name) => `${name} ${known[name] ?? '(none)'}, not ${origin[name] ?? '(none)'}`);
    throw new MillraceError('usage', `the state in ${this.#file} was made from ${told.join('; ')}`);
  }

  commit(now: number): void {
    // A broker can confirm what was on its way when all has ended: then it is sent again, which is allowed.
    if (this.#pending.size > 0 && this.#db.open) this.#keep(now);
  }

  close(now: number | null): void {
    try {
      if (now !== null) this.#keep(now);
    } finally {
      this.#db.close();
      this.#lock.release('remove');
    }
  }

  #keep(now: number): void {
    try {
      this.#write(now);
    } catch (error) {
      throw unusable(this.#file, error);
    }
    this.#pending.clear();
  }
}

function unusable(file: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const code = errorCode(error);
  const busy = code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
  const detail = busy ? 'another process holds it' : messageOf(error);
  return new MillraceError('state_unusable', `${file}: ${detail}`, { cause: error });
}
