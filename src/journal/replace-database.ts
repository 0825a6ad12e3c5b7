import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { syncFolderNow } from '../lib/durable.ts';
import { DATABASE } from './owner.ts';
import { DDL, expectedSchema, hashedColumns, PAGE, VERSION } from './schema.ts';
import { isDamage, sqliteCode } from './sqlite-errors.ts';
import { defineRowHash, sumUp } from './sums.ts';

const NEW = `${DATABASE}.new`;
/** It is whole, and takes the place of the database. */
const REPLACEMENT = `${DATABASE}.replacement`;

/** Gives header and schema the values they were written with. @param db is closed */
export function mendInPlace(file: string, db: Database.Database): void {
  // SQLite's lock would go with any other descriptor of the file.
  db.close();
  mendHeader(file);
  const mended = new Database(file, { timeout: 0 });
  try {
    mendSchema(mended, file);
  } finally {
    mended.close();
  }
}

/**
 * Makes the database anew from each row of it that can be read. Of one that is damaged the sums are copied as they are: what is
 * missing shows by them.
 * @param db open, and locked as far as it can be; it is closed
 * @param isFormer it is of the format before, and sound
 */
export function replaceDatabase(folder: string, db: Database.Database, isFormer: boolean): void {
  try {
    build(join(folder, NEW), db, isFormer, join(folder, DATABASE));
    renameSync(join(folder, NEW), join(folder, REPLACEMENT));
    syncFolderNow(folder);
  } finally {
    db.close();
  }
  finishReplacing(folder);
}

/** What a crash has left of a replacement is done to its end. */
export function finishReplacing(folder: string): void {
  if (!existsSync(join(folder, REPLACEMENT))) return;
  // It belongs to the file that goes.
  for (const end of ['-wal', '-shm', '-journal']) rmSync(join(folder, DATABASE + end), { force: true });
  syncFolderNow(folder);
  renameSync(join(folder, REPLACEMENT), join(folder, DATABASE));
  syncFolderNow(folder);
}

/** Fields of the file's header that are the same in each of our databases; the number of pages follows from the file's size. */
function mendHeader(file: string): void {
  const fd = openSync(file, 'r+');
  try {
    const { size } = fstatSync(fd);
    const header = Buffer.alloc(HEADER);
    if (readSync(fd, header, 0, HEADER, 0) < HEADER) return;
    header.write('SQLite format 3\0', 0, 'latin1');
    header.writeUInt16BE(PAGE, 16);
    header.set([2, 2, 0, 64, 32, 32], 18);
    header.writeUInt32BE(Math.max(1, Math.ceil(size / PAGE)), 28);
    // The schema's format, UTF-8.
    header.writeUInt32BE(4, 44);
    header.writeUInt32BE(1, 56);
    header.writeUInt32BE(VERSION, 60);
    header.copy(header, 92, 24, 28);
    writeSync(fd, header, 0, HEADER, 0);
  } finally {
    closeSync(fd);
  }
}

const HEADER = 100;

/** Gives the entries of the schema the text that they were written with, as far as the table of them can be read. */
function mendSchema(old: Database.Database, file: string): void {
  whatCanBeRead(file, () => {
    old.unsafeMode(true);
    old.pragma('locking_mode = EXCLUSIVE');
    old.pragma('writable_schema = ON');
    const found = old.prepare('SELECT rowid, type, name, tbl_name, sql FROM sqlite_schema').raw().all() as [
      number,
      ...unknown[],
    ][];
    const expected = expectedSchema();
    const unknown = found.filter(([, , name]) => !expected.some(([, one]) => one === name));
    const missing = expected.filter(([, name]) => !found.some(([, , one]) => one === name));
    const update = old.prepare(
      'UPDATE sqlite_schema SET type = ?, name = ?, tbl_name = ?, sql = ? WHERE rowid = ?',
    );
    for (const row of expected) {
      const [type, name, table, sql] = row;
      const isOnlyOne = unknown.length === 1 && missing.length === 1 && missing[0] === row;
      const at = found.find(([, , one]) => one === name) ?? (isOnlyOne ? unknown[0] : undefined);
      if (at !== undefined && [type, name, table, sql].some((value, index) => value !== at[index + 1]))
        update.run(type, name, table, sql, at[0]);
    }
    old.pragma('writable_schema = RESET');
    old.unsafeMode(false);
  });
}

function build(path: string, old: Database.Database, isFormer: boolean, oldFile: string): void {
  for (const end of ['', '-journal']) rmSync(path + end, { force: true });
  const db = new Database(path);
  try {
    db.pragma(`page_size = ${PAGE}`);
    db.pragma('auto_vacuum = INCREMENTAL');
    db.pragma('journal_mode = MEMORY');
    defineRowHash(db);
    db.transaction(() => {
      db.exec(DDL);
      db.exec('DROP TRIGGER quarantine_left');
      const names = expectedSchema().flatMap(([type, name]) => (type === 'table' ? [name] : []));
      const cut = names.filter((name) => !copyTable(db, old, name, oldFile));
      if (isFormer) sumUp(db);
      // A generation without all of its ids, or ids without theirs, are of no use.
      if (cut.some((name) => ID_TABLES.has(name))) db.exec(`DELETE FROM sums WHERE name = 'generations'`);
      db.exec(expectedSchema().find(([, name]) => name === 'quarantine_left')?.[3] ?? '');
      db.pragma(`user_version = ${VERSION}`);
    })();
  } finally {
    db.close();
  }
}

const ID_TABLES: ReadonlySet<string> = new Set(['generations', 'recent_ids', 'sealed_ids']);

/** @returns false where not all of it could be read */
function copyTable(db: Database.Database, old: Database.Database, table: string, file: string): boolean {
  const copyBy = (order: 'ASC' | 'DESC'): boolean =>
    whatCanBeRead(file, () => {
      const select = old.prepare(`SELECT * FROM ${table} NOT INDEXED ORDER BY 1 ${order}`).raw();
      const insert = db.prepare(
        insertInto(
          table,
          select.columns().map(({ name }) => name),
        ),
      );
      for (const row of select.iterate() as IterableIterator<unknown[]>) insertIfValid(insert, row);
    });
  if (table === 'sqlite_sequence') db.exec('DELETE FROM sqlite_sequence');
  // What lies behind a damaged page is read from the other end.
  return copyBy('ASC') || (copyBy('DESC'), false);
}

/** A row that no program has written stays out: the sums say that one is missing. */
function insertIfValid(insert: Database.Statement, row: readonly unknown[]): void {
  try {
    insert.run(...row);
  } catch (error) {
    if (!sqliteCode(error).startsWith('SQLITE_CONSTRAINT')) throw error;
  }
}

/** @param columns as they come; those of the format before, too */
function insertInto(table: string, columns: readonly string[]): string {
  const given = `SELECT ${columns.map((name) => `? AS ${name}`).join()}`;
  if (table === 'damaged' && !columns.includes('what'))
    return `INSERT INTO damaged SELECT 'record', seq, 1, '', found_at, '{}' FROM (${given})`;
  if ((table === 'quarantine' || table === 'dead_letters') && !columns.includes('crc'))
    return `INSERT INTO ${table} SELECT *, row_hash(${hashedColumns(table)}) FROM (${given})`;
  return `INSERT OR IGNORE INTO ${table} (${columns.join()}) ${given}`;
}

/** @returns false where it was broken off by damage */
function whatCanBeRead(file: string, read: () => void): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (isDamage(error, file)) return false;
    throw error;
  }
}
