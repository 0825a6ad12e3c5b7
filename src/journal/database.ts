import { chmodSync, closeSync, existsSync, lstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { MillraceError, messageOf } from '../core/errors.ts';
import { errorCode, makeFolder, OWNER_ONLY, syncFolderNow } from '../lib/durable.ts';
import { mend, type Recovery, type Repair } from './mend.ts';
import { DATABASE, readOwner } from './owner.ts';
import { finishReplacing, mendInPlace, replaceDatabase } from './replace-database.ts';
import { DDL, expectedSchema, PAGE, schemaRows, VERSION, VERSION_BEFORE } from './schema.ts';
import { hasJournalFiles, NOTE } from './second-note.ts';
import { walBytesFor } from './space.ts';
import { isDamage } from './sqlite-errors.ts';
import { defineRowHash, SUM_TRIGGERS, sumUp } from './sums.ts';

interface OpenOptions {
  /** Folder of the journal. */
  readonly path: string;
  /** False for commands that only look: a missing journal is an error then. */
  readonly create: boolean;
  /** What a person decided, for a journal that does not say how far the sinks are. */
  readonly recovery?: Recovery | undefined;
}

export interface JournalOptions extends OpenOptions {
  /** How long settled events are kept, milliseconds. */
  readonly retention: number;
  readonly maxBytes: number;
  /** How long an id is remembered, milliseconds. */
  readonly dedupWindow: number;
}

interface OpenedDatabase {
  readonly db: Database.Database;
  /** What was damaged or missing, and was repaired or is lost. */
  readonly repairs: readonly Repair[];
}

/**
 * Opens the journal's database as its only owner: SQLite's exclusive lock, which the kernel drops with the process. Checks all of
 * the database and repairs it from the second note. A missing database counts as new only where no other file of a journal is left.
 *
 * @throws MillraceError journal_in_use, journal_missing, journal_damaged, journal_unreadable, folder_unwritable
 */
export function openDatabase(options: OpenOptions): OpenedDatabase {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return openOnce(options);
    } catch (error) {
      const isInUse = error instanceof MillraceError && error.code === 'journal_in_use';
      if (!isInUse || attempt === ATTEMPTS) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE * (1 + Math.random()));
    }
  }
}

/** Two processes that start at the same moment can refuse each other; one of them gets the lock within so many attempts. */
const ATTEMPTS = 4;
/** Milliseconds. */
const PAUSE = 20;

function openOnce({ path: folder, create, recovery }: OpenOptions): OpenedDatabase {
  const file = join(folder, DATABASE);
  const hasOthers = hasJournalFiles(folder);
  if (!create && !existsSync(file) && !hasOthers) {
    throw new MillraceError('journal_missing', `${file} does not exist; \`millrace serve\` creates it`);
  }
  prepareFile(folder, file);
  for (let tries = 0; ; tries += 1) {
    const db = new Database(file, { timeout: 0 });
    try {
      const state = stateOf(db, file, hasOthers);
      if (state === 'damaged' && !hasOthers) {
        const detail = 'it is no database of a journal, and neither a segment nor a second note is beside it';
        throw new MillraceError('journal_unreadable', `${file}: ${detail}`);
      }
      if (state === 'damaged' && tries === 0) {
        mendInPlace(file, db);
        continue;
      }
      if (state === 'damaged' || state === 'former') {
        if (tries > 1) throw new Error('it was made again from its rows, and is still damaged');
        replaceDatabase(folder, db, state === 'former');
        tries = 1;
        continue;
      }
      const repairs = db
        .transaction(() => {
          if (state !== 'sound') db.exec(DDL);
          if (state === 'new') sumUp(db);
          db.exec(SUM_TRIGGERS);
          return mend(db, folder, recovery);
        })
        .immediate();
      setUp(db, folder);
      // On disk before the first segment: a segment without a database is a journal that has lost it.
      if (state === 'new') db.pragma('wal_checkpoint(TRUNCATE)');
      return { db, repairs };
    } catch (error) {
      db.close();
      throw explain(error, folder, file);
    }
  }
}

function prepareFile(folder: string, file: string): void {
  try {
    makeFolder(folder, 0o700);
    for (const name of [file, `${file}-wal`, `${file}-journal`, join(folder, NOTE)]) protect(name);
    finishReplacing(folder);
    // SQLite gives the files that it makes beside this one the same mode.
    if (!existsSync(file)) {
      closeSync(openSync(file, 'wx', OWNER_ONLY));
      syncFolderNow(folder);
    }
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    throw unwritable(folder, error);
  }
}

/**
 * `new`: there is no journal yet. `gone`: the database is empty, and other files of a journal are there. `former`: it is undamaged
 * and of the previous format. `damaged`: its pages or its schema are not what SQLite or this program wrote. `sound`: it can be
 * read; `mend` checks its rows.
 */
type State = 'new' | 'gone' | 'former' | 'damaged' | 'sound';

/** Locks the database, and checks all of its pages. @param hasOthers true when other files of a journal are there */
function stateOf(db: Database.Database, file: string, hasOthers: boolean): State {
  try {
    defineRowHash(db);
    // The triggers of the sums see a replaced row as a deleted and an added one.
    db.pragma('recursive_triggers = ON');
    db.pragma(`page_size = ${PAGE}`);
    // Exclusive, and before WAL is entered: then the lock is kept until the database is closed, and the WAL index is on the heap
    // instead of in a mapped file, which on a full disk would end the process with SIGBUS.
    db.pragma('locking_mode = EXCLUSIVE');
    // Free pages can be given back to the disk one by one. Only a new file takes this.
    if (db.pragma('auto_vacuum', { simple: true }) !== 2) db.pragma('auto_vacuum = INCREMENTAL');
    db.pragma('journal_mode = WAL');
    db.exec('BEGIN IMMEDIATE; COMMIT');
    const version = Number(db.pragma('user_version', { simple: true }));
    const schema = schemaRows(db);
    if (version === 0 && schema.length === 0) return hasOthers ? 'gone' : 'new';
    const isExpected = JSON.stringify(schema) === JSON.stringify(expectedSchema());
    if (!isExpected && version !== VERSION && version !== VERSION_BEFORE) {
      throw new MillraceError(
        'journal_unreadable',
        `${file} has format ${version}; this millrace reads ${VERSION}`,
      );
    }
    if (db.pragma('integrity_check(1)', { simple: true }) !== 'ok') return 'damaged';
    if (isExpected) return 'sound';
    return version === VERSION_BEFORE && !schema.some(([, name]) => name === 'sums') ? 'former' : 'damaged';
  } catch (error) {
    if (isDamage(error, file)) return 'damaged';
    throw error;
  }
}

/** Settings of the connection from the first write on. */
function setUp(db: Database.Database, folder: string): void {
  db.pragma(`user_version = ${VERSION}`);
  // After the first write: better-sqlite3 drops WAL databases to NORMAL, which would not fsync each commit.
  db.pragma('synchronous = FULL');
  if (db.pragma('synchronous', { simple: true }) !== 2)
    throw new Error('SQLite does not accept synchronous=FULL');
  // Deleted rows are zeroed where that costs no write of its own; an erasure zeroes the rest.
  db.pragma('secure_delete = FAST');
  db.pragma('cache_size = -8192');
  db.pragma(`wal_autocheckpoint = ${Math.ceil(walBytesFor(folder) / PAGE)}`);
}

/** Refuses links, which SQLite would follow, and takes away rights of a group, which some volumes give to every file. */
function protect(file: string): void {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isFile())
    throw new MillraceError('journal_unreadable', `${file} is not a plain file; it is not followed`);
  if ((stats.mode & 0o077) !== 0) chmodSync(file, OWNER_ONLY);
}

function unwritable(folder: string, cause: unknown): MillraceError {
  return new MillraceError('folder_unwritable', `journal.path ${folder}: ${messageOf(cause)}`, { cause });
}

function explain(error: unknown, folder: string, file: string): MillraceError {
  if (error instanceof MillraceError) return error;
  const code = errorCode(error);
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    const owner = readOwner(folder);
    const who = owner === null ? 'another process' : `process ${owner.pid}`;
    return new MillraceError('journal_in_use', `${folder} is held by ${who}`, { cause: error });
  }
  if (code === 'SQLITE_READONLY' || code === 'SQLITE_CANTOPEN' || code === 'SQLITE_FULL') {
    return unwritable(folder, error);
  }
  return new MillraceError('journal_unreadable', `${file}: ${messageOf(error)}`, { cause: error });
}
