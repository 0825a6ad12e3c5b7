import { closeSync, constants, lstatSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { CREATE_NEW, errorCode, NotFollowed, OWNER_ONLY } from './durable.ts';

/** A lock that is held. The system drops it with the process, so a kill -9 leaves nothing stale behind. */
export interface FileLock {
  release(): void;
}

/**
 * Takes the lock that stands for `path`, or returns null when another process, or another part of this one, has it.
 * Node has no `flock`; SQLite's exclusive transaction on an empty database is the same thing on every platform.
 * The file stays when the lock is let go of: removing it would let two owners lock two files of one name.
 * @throws NotFollowed when the name is that of a link, a FIFO or a folder, and the system's error when the file cannot be made
 */
export function tryLock(path: string): FileLock | null {
  makePlain(path);
  const database = new Database(path, { timeout: 0, fileMustExist: true });
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

/**
 * SQLite would follow a symbolic link, and lock whatever is at its end. A file that is there is looked at by name only:
 * POSIX drops all locks of a process on a file when it closes any descriptor of it.
 */
function makePlain(path: string): void {
  try {
    closeSync(openSync(path, CREATE_NEW | constants.O_NOFOLLOW, OWNER_ONLY));
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    const stats = lstatSync(path);
    if (stats.isSymbolicLink()) throw new NotFollowed(path, 'a symbolic link');
    if (!stats.isFile()) throw new NotFollowed(path, 'not a plain file');
  }
}
