import { closeSync, constants, lstatSync, openSync, unlinkSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { CREATE_NEW, errorCode, NotFollowed, OWNER_ONLY } from './durable.ts';
import { clearOwner, readOwner, writeOwner } from './lock-owner.ts';

/** A lock that this process has. The system drops it when the process ends, however it ends. */
export interface FileLock {
  /** @param file whether the lock's file stays; it is removed from a folder of results */
  release(file?: 'keep' | 'remove'): void;
}

/** Attempts at a file that others remove in between; after so many, something else is wrong. */
const TRIES = 100;
/** Two processes that try at the same moment can refuse each other; one of them gets the lock within so many attempts. */
const ATTEMPTS = 4;
/** Milliseconds within which a new owner writes its name. */
const MOMENT = 1000;
const PAUSE = 20;
/** Milliseconds between two attempts of `lockInTurn`. */
const TURN = 5;

/**
 * Takes the lock of the file `path`, which is made. Node has no `flock`; an exclusive SQLite transaction on an empty database does the
 * same on every platform.
 * @returns null when another process, or another part of this one, has it
 * @throws NotFollowed for a link, a FIFO or a folder; the system's error when the file cannot be made
 */
export function tryLock(path: string): FileLock | null {
  const database = lockFile(path);
  if (database === null) return null;
  return {
    release: (file = 'keep') => {
      // Once only: a later lock of this name may be another's.
      if (!database.open) return;
      // Before it is released: a process that opened the file in between finds that it was removed.
      if (file === 'remove') removeFile(path);
      database.close();
    },
  };
}

/** As `tryLock`, for a lock that is kept for long: the owner's name is written beside it. @param name as `writeOwner` */
export function tryOwn(path: string, name?: string): FileLock | null {
  const lock = tryLock(path);
  if (lock === null) return null;
  writeOwner(path, name);
  let isOurs = true;
  return {
    release: (file) => {
      if (isOurs) clearOwner(path);
      isOurs = false;
      lock.release(file);
    },
  };
}

/** Who has a lock that was taken by `tryOwn`, such as `backfill (process 4711)`; null when that process does not run. */
export function ownerOf(path: string): string | null {
  return readOwner(path);
}

/** As `tryOwn`, with some attempts. @param refusal makes the error from the owner's name, such as `backfill (process 4711)` */
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
 * As `tryLock`, for a lock that every process has for a moment only.
 * @param patience milliseconds
 * @throws Error when the lock is not free within that time
 */
export async function lockInTurn(path: string, patience = Number.POSITIVE_INFINITY): Promise<FileLock> {
  for (let waited = 0; ; waited += TURN) {
    const lock = tryLock(path);
    if (lock !== null) return lock;
    if (waited > patience) throw new Error(`${path} is held by another process`);
    await wait(TURN);
  }
}

function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // An open file that cannot be removed does no harm.
  }
}

/** The database whose transaction is the lock; null when another process has it. */
function lockFile(path: string): Database.Database | null {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const before = identityOf(path) ?? makeFile(path);
    let database: Database.Database | null = null;
    try {
      database = new Database(path, { timeout: 0, fileMustExist: true });
      // Nothing is ever written: no rollback journal beside it.
      database.pragma('journal_mode = MEMORY');
      database.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      database?.close();
      if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return null;
      if (identityOf(path) === before) throw error;
      continue;
    }
    // Its last owner may have removed the file before it was locked: then two owners would have two files of one name.
    if (identityOf(path) === before) return database;
    database.close();
  }
  throw new Error(`${path} keeps disappearing`);
}

/**
 * Device, number and birth of a file; null when there is none. By name only, without a descriptor: closing one drops all POSIX
 * locks of the process on the file. Links are refused, because SQLite would follow them.
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
