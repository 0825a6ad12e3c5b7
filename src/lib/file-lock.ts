import Database from 'better-sqlite3';

/** A lock that is held. The system drops it with the process, so a kill -9 leaves nothing stale behind. */
export interface FileLock {
  release(): void;
}

/**
 * Takes the lock that stands for `path`, or returns null when another process, or another part of this one, has it.
 * Node has no `flock`; SQLite's exclusive transaction on an empty database is the same thing on every platform.
 * The file stays when the lock is let go of: removing it would let two owners lock two files of one name.
 * @throws the system's error when the file cannot be made
 */
export function tryLock(path: string): FileLock | null {
  const database = new Database(path, { timeout: 0 });
  try {
    // Nothing is ever written, so no rollback journal is needed beside it.
    database.pragma('journal_mode = MEMORY');
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return null;
    throw error;
  }
  return { release: () => database.close() };
}
