import { chmodSync, closeSync, existsSync, lstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { MillraceError, messageOf } from '../core/errors.ts';
import { makeFolder, OWNER_ONLY, syncFolderNow } from '../lib/durable.ts';
import { mend, type Recovery, type Repair } from './mend.ts';
import { DATABASE, readOwner } from './owner.ts';
import { finishReplacing, mendInPlace, replaceDatabase } from './replace-database.ts';
import { DDL, expectedSchema, PAGE, schemaRows, VERSION, VERSION_BEFORE } from './schema.ts';
import { isHeld, NOTE } from './second-note.ts';
import { walBytesFor } from './space.ts';
import { isDamage, sqliteCode } from './sqlite-errors.ts';
import { defineRowHash, SUM_TRIGGERS, sumUp } from './sums.ts';

export interface OpenOptions {
  readonly path: string;
  /** False: a missing journal is an error. */
  readonly create: boolean;
  /** What a person decided where nothing says how far the sinks are. */
  readonly recovery?: Recovery | undefined;
}

export interface OpenedDatabase {
  readonly db: Database.Database;
  /** What was damaged or gone: mended, or named as lost. */
  readonly repairs: readonly Repair[];
}

/**
 * Opens the journal's database as its only owner. SQLite's exclusive lock is the single-writer lock: the kernel drops
 * it with the process, so a kill -9 leaves nothing stale behind. Each start checks all of it. What is damaged or gone is mended
 * from the second note; a database that is gone is never taken for a new one.
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

/** Two that start at the same moment can each keep the other out; tried so often, one of them is not. */
const ATTEMPTS = 4;
/** Milliseconds. */
const PAUSE = 20;

function openOnce({ path: folder, create, recovery }: OpenOptions): OpenedDatabase {
  const file = join(folder, DATABASE);
  const held = isHeld(folder);
  if (!create && !existsSync(file) && !held) {
    throw new MillraceError('journal_missing', `${file} does not exist; \`millrace serve\` creates it`);
  }
  prepareFile(folder, file);
  for (let tries = 0; ; tries += 1) {
    const db = new Database(file, { timeout: 0 });
    try {
      const state = stateOf(db, file, held);
      if (state === 'damaged' && !held) {
        const detail = 'it is no database of a journal, and neither a segment nor a second note is beside it';
        throw new MillraceError('journal_unreadable', `${file}: ${detail}`);
      }
      if (state === 'damaged' && tries === 0) {
        mendInPlace(file, db);
        continue;
      }
      if (state === 'damaged' || state === 'former') {
        if (tries > 1) throw new Error('made anew, it is damaged again');
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
      // On disk before the first segment, which would be one of a journal whose database is gone.
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
    for (const name of [file, `${file}-wal`, `${file}-journal`, join(folder, NOTE)]) {
      refuseUnlessPlain(name);
      keepPrivate(name);
    }
    finishReplacing(folder);
    // SQLite gives what it makes beside the file the file's own mode.
    if (!existsSync(file)) {
      closeSync(openSync(file, 'wx', OWNER_ONLY));
      syncFolderNow(folder);
    }
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    throw new MillraceError('folder_unwritable', `journal.path ${folder}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/**
 * `new`: there is no journal yet. `gone`: there is one, and its database is empty. `former`: of the format before, and sound.
 * `damaged`: not what SQLite or this program wrote. `sound`: it can be read, and what its rows say is looked at by `mend`.
 */
type State = 'new' | 'gone' | 'former' | 'damaged' | 'sound';

/** Locks the database, and looks at all of its pages. @param held whether other files of a journal are there */
function stateOf(db: Database.Database, file: string, held: boolean): State {
  try {
    defineRowHash(db);
    // A row that is replaced counts as one that is deleted and one that is added.
    db.pragma('recursive_triggers = ON');
    db.pragma(`page_size = ${PAGE}`);
    // Exclusive, and before WAL is entered: the lock is then held for good, and the WAL index lives on the heap
    // instead of in a mapped file, which on a full disk would end the process with SIGBUS.
    db.pragma('locking_mode = EXCLUSIVE');
    // Deleted rows can be given back to the disk, page by page: heeded by a new file.
    if (db.pragma('auto_vacuum', { simple: true }) !== 2) db.pragma('auto_vacuum = INCREMENTAL');
    db.pragma('journal_mode = WAL');
    db.exec('BEGIN IMMEDIATE; COMMIT');
    const version = Number(db.pragma('user_version', { simple: true }));
    const schema = schemaRows(db);
    if (version === 0 && schema.length === 0) return held ? 'gone' : 'new';
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

/** What holds for the connection from the first write on. */
function setUp(db: Database.Database, folder: string): void {
  db.pragma(`user_version = ${VERSION}`);
  // After the first write: better-sqlite3 drops WAL databases to NORMAL, which would not fsync each commit.
  db.pragma('synchronous = FULL');
  if (db.pragma('synchronous', { simple: true }) !== 2) throw new Error('synchronous=FULL was not taken');
  // Rows that are deleted are zeroed where that costs nothing more; an erasure sees to the rest.
  db.pragma('secure_delete = FAST');
  db.pragma('cache_size = -8192');
  db.pragma(`wal_autocheckpoint = ${Math.ceil(walBytesFor(folder) / PAGE)}`);
}

/** SQLite would follow a symbolic link, and write to whatever is at its end. */
function refuseUnlessPlain(file: string): void {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined || stats.isFile()) return;
  throw new MillraceError('journal_unreadable', `${file} is not a plain file; it is not followed`);
}

/** Volumes can come with a group's rights on everything. */
function keepPrivate(file: string): void {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats !== undefined && (stats.mode & 0o077) !== 0) chmodSync(file, OWNER_ONLY);
}

function explain(error: unknown, folder: string, file: string): MillraceError {
  if (error instanceof MillraceError) return error;
  const code = sqliteCode(error);
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    const owner = readOwner(folder);
    const who = owner === null ? 'another process' : `process ${owner.pid}`;
    return new MillraceError('journal_in_use', `${folder} is held by ${who}`, { cause: error });
  }
  if (code === 'SQLITE_READONLY' || code === 'SQLITE_CANTOPEN' || code === 'SQLITE_FULL') {
    return new MillraceError('folder_unwritable', `journal.path ${folder}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return new MillraceError('journal_unreadable', `${file}: ${messageOf(error)}`, { cause: error });
}
