import { closeSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { MillraceError, messageOf } from '../core/errors.ts';
import { errorCode } from '../lib/durable.ts';
import { own, type FileLock } from '../lib/file-lock.ts';
import type { Change, Store } from './state.ts';

const VERSION = 1;
const DDL = `CREATE TABLE IF NOT EXISTS documents (
  shelf TEXT NOT NULL,
  id TEXT NOT NULL,
  document TEXT NOT NULL,
  UNIQUE (shelf, id)
)`;

/** Ends the name of the lock beside the file. */
const LOCK = '-lock';

/**
 * A SQLite file, made when it is missing. What was written survives the end of the process, however it comes; what the
 * machine's end follows at once can be lost. What is deleted or replaced is overwritten. One process at a time.
 * @throws MillraceError state_unusable, folder_in_use
 */
export async function openStateFile(file: string): Promise<Store> {
  let db: Database.Database | null = null;
  let lock: FileLock | null = null;
  try {
    const refusal = (by: string) => new MillraceError('folder_in_use', `${file} is being written by ${by}`);
    lock = await own(`${file}${LOCK}`, refusal);
    // It holds keys: nobody else is to read it.
    closeSync(openSync(file, 'a', 0o600));
    db = new Database(file, { timeout: 0 });
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('journal_mode = WAL');
    db.exec('BEGIN IMMEDIATE; COMMIT');
    const version = Number(db.pragma('user_version', { simple: true }));
    if (version > VERSION) throw new Error(`it was written by a newer millrace (format ${version})`);
    if (version === 0 && db.prepare('SELECT 1 FROM sqlite_schema').get() !== undefined)
      throw new Error('it is another kind of database');
    db.exec(`BEGIN; ${DDL}; PRAGMA user_version = ${VERSION}; COMMIT`);
    db.pragma('secure_delete = ON');
    return storeOf(db, file, lock);
  } catch (error) {
    db?.close();
    lock?.release('remove');
    throw unusable(file, error);
  }
}

function storeOf(db: Database.Database, file: string, lock: FileLock): Store {
  const read = db.prepare<[string], { id: string; document: string }>(
    'SELECT id, document FROM documents WHERE shelf = ? ORDER BY rowid',
  );
  const put = db.prepare(
    'INSERT INTO documents VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET document = excluded.document',
  );
  const remove = db.prepare('DELETE FROM documents WHERE shelf = ? AND id = ?');
  const write = db.transaction((changes: readonly Change[]) => {
    for (const { shelf, id, document } of changes) {
      if (document === null) remove.run(shelf, id);
      else put.run(shelf, id, document);
    }
  });
  return {
    name: file,
    read: (shelf) => read.all(shelf),
    write: (changes) => {
      try {
        write(changes);
      } catch (error) {
        throw unusable(file, error);
      }
    },
    close: () => {
      db.close();
      lock.release('remove');
    },
  };
}

function unusable(file: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const code = errorCode(error);
  const busy = code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
  const detail = busy ? 'another process holds it' : messageOf(error);
  return new MillraceError('state_unusable', `${file}: ${detail}`, { cause: error });
}
