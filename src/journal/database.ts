import { chmodSync, closeSync, existsSync, lstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { MillraceError, messageOf } from '../core/errors.ts';
import { makeFolder, OWNER_ONLY } from '../lib/durable.ts';
import { IDS_OF_BEFORE } from './dedup.ts';
import { readOwner, DATABASE } from './owner.ts';
import { walBytesFor } from './space.ts';

/** From 4 on the events lie in segments. */
export const VERSION = 4;
/** Bytes. */
const PAGE = 8192;

/** Columns that hold an event, the same in every table that holds one. */
export const ROW_COLUMNS = 'id, source, type, team, user, client_user, received_at, headers, handling';
export const EVENT_COLUMNS = `${ROW_COLUMNS}, body`;

const EVENT_DDL = `
  id TEXT NOT NULL, source TEXT NOT NULL, type TEXT NOT NULL, team TEXT, user TEXT, client_user TEXT,
  received_at INTEGER NOT NULL, headers TEXT NOT NULL, handling TEXT, body BLOB NOT NULL`;

const DDL = `
-- Records that turned out not to be what was written; those that could be read are in quarantine as well. Earlier programs noted ids.
CREATE TABLE IF NOT EXISTS damaged (seq INTEGER PRIMARY KEY, id TEXT, found_at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS cursors (sink TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
-- What is settled ahead of them: as the feed said it with its last move, and what became a dead letter.
CREATE TABLE IF NOT EXISTS settled_ahead (sink TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS died_ahead (sink TEXT NOT NULL, seq INTEGER NOT NULL, destination TEXT);
CREATE INDEX IF NOT EXISTS died_ahead_by_seq ON died_ahead (sink, seq);
CREATE TABLE IF NOT EXISTS checkpoints (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS quarantine (key INTEGER PRIMARY KEY AUTOINCREMENT, reasons TEXT NOT NULL, ${EVENT_DDL});
CREATE TABLE IF NOT EXISTS dead_letters (
  key INTEGER PRIMARY KEY AUTOINCREMENT, sink TEXT NOT NULL, destination TEXT, code TEXT NOT NULL, reason TEXT NOT NULL,
  attempts INTEGER NOT NULL, died_at INTEGER NOT NULL, seq INTEGER NOT NULL, ${EVENT_DDL});
-- Rows of the quarantine that the log of receipts has entries for.
CREATE TABLE IF NOT EXISTS quarantine_entered (key INTEGER PRIMARY KEY);
CREATE TRIGGER IF NOT EXISTS quarantine_left AFTER DELETE ON quarantine
  BEGIN DELETE FROM quarantine_entered WHERE key = old.key; END;
-- Counting goes through these small indexes, never through the bodies.
CREATE INDEX IF NOT EXISTS quarantine_by_id ON quarantine (id);
DROP INDEX IF EXISTS dead_letters_by_sink;
CREATE INDEX IF NOT EXISTS dead_letters_by_seq ON dead_letters (sink, seq);
-- Ids that stand in no record of the segments: of events in quarantine, and of those whose segment is gone.
CREATE TABLE IF NOT EXISTS recent_ids (n INTEGER PRIMARY KEY, hash BLOB NOT NULL, at INTEGER NOT NULL);
-- An age is in milliseconds, against the newest of the generation.
CREATE TABLE IF NOT EXISTS sealed_ids (
  generation INTEGER, hash BLOB, age INTEGER, PRIMARY KEY (generation, hash)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS generations (
  generation INTEGER PRIMARY KEY, last_at INTEGER NOT NULL, ids INTEGER NOT NULL, filter BLOB NOT NULL);
-- What came in, and to what end, by the hour of receipt: outlives the events. And which dead letters a person dropped, by the hash of
-- their ids.
CREATE TABLE IF NOT EXISTS hour_counts (
  hour INTEGER NOT NULL, kind TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (hour, kind)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dropped_letters (
  sink TEXT NOT NULL, id TEXT NOT NULL, received_at INTEGER NOT NULL, PRIMARY KEY (sink, id)) WITHOUT ROWID;
-- What an erasure took before it came to a sink.
CREATE TABLE IF NOT EXISTS erased_alone (
  sink TEXT NOT NULL, seq INTEGER NOT NULL, received_at INTEGER NOT NULL, PRIMARY KEY (sink, seq)) WITHOUT ROWID;`;

/**
 * Opens the journal's database as its only owner. SQLite's exclusive lock is the single-writer lock: the kernel drops
 * it with the process, so a kill -9 leaves nothing stale behind.
 *
 * @throws MillraceError journal_in_use, journal_missing, journal_unreadable, folder_unwritable
 */
export function openDatabase(folder: string, create: boolean): Database.Database {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return openOnce(folder, create);
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

function openOnce(folder: string, create: boolean): Database.Database {
  const file = join(folder, DATABASE);
  if (!create && !existsSync(file)) {
    throw new MillraceError('journal_missing', `${file} does not exist; \`millrace serve\` creates it`);
  }
  try {
    makeFolder(folder, 0o700);
  } catch (error) {
    throw new MillraceError('folder_unwritable', `journal.path ${folder}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  for (const name of [DATABASE, `${DATABASE}-wal`, `${DATABASE}-journal`])
    refuseUnlessPlain(join(folder, name));
  let db: Database.Database;
  try {
    for (const name of [DATABASE, `${DATABASE}-wal`, `${DATABASE}-journal`]) keepPrivate(join(folder, name));
    // SQLite gives what it makes beside the file the file's own mode.
    if (!existsSync(file)) closeSync(openSync(file, 'wx', OWNER_ONLY));
    db = new Database(file, { timeout: 0 });
  } catch (error) {
    throw new MillraceError('folder_unwritable', `journal.path ${folder}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  try {
    db.pragma(`page_size = ${PAGE}`);
    // Exclusive, and before WAL is entered: the lock is then held for good, and the WAL index lives on the heap
    // instead of in a mapped file, which on a full disk would end the process with SIGBUS.
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('journal_mode = WAL');
    db.exec('BEGIN IMMEDIATE; COMMIT');
    const version = Number(db.pragma('user_version', { simple: true }));
    if (version > VERSION) throw new Error(`it was written by a newer millrace (format ${version})`);
    db.transaction(() => prepareTables(db, version))();
    // After the first write: better-sqlite3 drops WAL databases to NORMAL, which would not fsync each commit.
    db.pragma('synchronous = FULL');
    if (db.pragma('synchronous', { simple: true }) !== 2) throw new Error('synchronous=FULL was not taken');
    // Rows that are deleted are zeroed where that costs nothing more; an erasure sees to the rest.
    db.pragma('secure_delete = FAST');
    db.pragma('cache_size = -8192');
    db.pragma(`wal_autocheckpoint = ${Math.ceil(walBytesFor(folder) / PAGE)}`);
    return db;
  } catch (error) {
    db.close();
    throw explain(error, folder, file);
  }
}

/** Makes the tables of a new journal, and those of an older one what they were in format 3: its events are still among them. */
function prepareTables(db: Database.Database, version: number): void {
  // Records of format 1 have no checksum and are not checked.
  if (version === 1) db.exec('ALTER TABLE events ADD COLUMN crc INTEGER');
  // Ids of formats 1 and 2 have no digest of their bytes, and count for any bytes until their window is over.
  const knewIdsOnly = version === 1 || version === 2;
  if (knewIdsOnly) db.exec('ALTER TABLE sealed_ids ADD COLUMN age INTEGER');
  db.exec(DDL);
  if (knewIdsOnly)
    db.prepare('INSERT OR REPLACE INTO checkpoints VALUES (?, unixepoch() * 1000)').run(IDS_OF_BEFORE);
  db.pragma(`user_version = ${version === 0 ? VERSION : Math.max(version, VERSION - 1)}`);
}

/** SQLite would follow a symbolic link, and write to whatever is at its end. */
function refuseUnlessPlain(file: string): void {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined || stats.isFile()) return;
  throw new MillraceError('journal_unreadable', `${file} is not a plain file; it is not followed`);
}

/** Older journals were made as the umask said, and volumes can come with a group's rights on everything. */
function keepPrivate(file: string): void {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats !== undefined && (stats.mode & 0o077) !== 0) chmodSync(file, OWNER_ONLY);
}

function explain(error: unknown, folder: string, file: string): MillraceError {
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

/** SQLite's symbolic result code, or the empty string for any other error. */
export function sqliteCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
