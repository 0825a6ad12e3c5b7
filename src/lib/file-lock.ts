import { closeSync, constants, lstatSync, openSync, unlinkSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { CREATE_NEW, errorCode, NotFollowed, OWNER_ONLY } from './durable.ts';
import { clearOwner, readOwner, writeOwner } from './lock-owner.ts';

/** A lock that is held. The system drops it with the process, so a kill -9 leaves nothing stale behind. */
export interface FileLock {
  /** @param file whether the file of the lock stays; not in a folder that is somebody's output */
  release(file?: 'keep' | 'remove'): void;
}

/** Times that a file can be removed under us before something else must be wrong. */
const TRIES = 100;
/** Two that try at the same moment can both be refused; tried so often, one of them is not. */
const ATTEMPTS = 4;
/** Between taking a lock and writing a name there is a moment, milliseconds. */
const MOMENT = 1000;
const PAUSE = 20;
/** Between two looks of those who take it in turns. */
const TURN = 5;

/**
 * Takes the lock that stands for `path`, or returns null when another process, or another part of this one, has it.
 * Node has no `flock`; SQLite's exclusive transaction on an empty database is the same thing on every platform.
 * The file stays when the lock is released.
 * @throws NotFollowed when the name is that of a link, a FIFO or a folder, and the system's error when the file cannot be made
 */
export function tryLock(path: string): FileLock | null {
  const database = lockFile(path);
  return database === null ? null : held(path, database);
}

/** The same, for a lock that is held for long: its owner's name lies beside it. */
export function tryOwn(path: string): FileLock | null {
  const lock = tryLock(path);
  if (lock === null) return null;
  writeOwner(path);
  let isOurs = true;
  return {
    release: (file) => {
      if (isOurs) clearOwner(path);
      isOurs = false;
      lock.release(file);
    },
  };
}

/**
 * The same, for those who cannot do without it.
 * @param refusal what is thrown; given the owner's name, such as `backfill (process 4711)`
 */
export async function own(path: string, refusal: (owner: string) => Error): Promise<FileLock> {
  const end = performance.now() + MOMENT;
  for (let attempt = 1; ; attempt += 1) {
    const lock = tryOwn(path);
    if (lock !== null) return lock;
    const owner = attempt < ATTEMPTS ? null : readOwner(path);
    if (owner !== null || performance.now() > end) throw refusal(owner ?? 'another process');
    await wait(PAUSE * (1 + Math.random()));
  }
}

/**
 * The same as `tryLock`, for those who hold it for a moment each.
 * @param patience milliseconds
 * @throws Error when it is not free within that
 */
export async function lockInTurn(path: string, patience = Number.POSITIVE_INFINITY): Promise<FileLock> {
  for (let waited = 0; ; waited += TURN) {
    const lock = tryLock(path);
    if (lock !== null) return lock;
    if (waited > patience) throw new Error(`${path} is held by another process`);
    await wait(TURN);
  }
}

function held(path: string, database: Database.Database): FileLock {
  return {
    release: (file = 'keep') => {
      // Once only: what is there later may be another's.
      if (!database.open) return;
      // Before it is released: whoever opened it meanwhile sees then that it is nobody's any more.
      if (file === 'remove') removeFile(path);
      database.close();
    },
  };
}

function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Where an open file cannot be removed it stays, and does no harm.
  }
}

/** Held while it is open. */
function lockFile(path: string): Database.Database | null {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const before = identityOf(path) ?? makeFile(path);
    let database: Database.Database | null = null;
    try {
      database = new Database(path, { timeout: 0, fileMustExist: true });
      // Nothing is ever written, so no rollback journal is needed beside it.
      database.pragma('journal_mode = MEMORY');
      database.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      database?.close();
      if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return null;
      if (identityOf(path) === before) throw error;
      continue;
    }
    // Its last owner may have removed it between the look and the lock: two owners would have two files of one name.
    if (identityOf(path) === before) return database;
    database.close();
  }
  throw new Error(`${path} keeps disappearing`);
}

/**
 * What tells a file from another of its name; null when there is none. It is looked at by name only: POSIX drops all
 * locks of a process on a file when it closes any descriptor of it. SQLite would follow a symbolic link.
 */
function identityOf(path: string): string | null {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return null;
  if (stats.isSymbolicLink()) throw new NotFollowed(path, 'a symbolic link');
  if (!stats.isFile()) throw new NotFollowed(path, 'not a plain file');
  return `${stats.dev} ${stats.ino} ${stats.birthtimeNs}`;
}

function makeFile(path: string): string | null {
  try {
    closeSync(openSync(path, CREATE_NEW | constants.O_NOFOLLOW, OWNER_ONLY));
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  return identityOf(path);
}
