import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { errorCode, syncFolderNow } from '../lib/durable.ts';
import { DATABASE } from './owner.ts';
import { DDL, expectedSchema, hashedColumns, PAGE, VERSION } from './schema.ts';
import { isDamage } from './sqlite-errors.ts';
import { defineRowHash, sumUp } from './sums.ts';

const NEW = `${DATABASE}.new`;
/** A complete database that is about to replace the damaged one. */
const REPLACEMENT = `${DATABASE}.replacement`;

/** Restores the header and the schema to what they were written as. @param db is closed by this */
export function mendInPlace(file: string, db: Database.Database): void {
  // Closing another descriptor of the file would drop SQLite's lock.
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
 * Makes the database again from every row that can be read. The sums of a damaged one are copied as they are: they show what is
 * missing.
 * @param db locked as far as possible; closed by this
 * @param isFormer true for an undamaged database of the previous format
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

/** Completes a replacement that a crash interrupted. */
export function finishReplacing(folder: string): void {
  if (!existsSync(join(folder, REPLACEMENT))) return;
  // These belong to the replaced file.
  for (const end of ['-wal', '-shm', '-journal']) rmSync(join(folder, DATABASE + end), { force: true });
  syncFolderNow(folder);
  renameSync(join(folder, REPLACEMENT), join(folder, DATABASE));
  syncFolderNow(folder);
}

/** Restores the fields of the header that all our databases have in common; the number of pages follows from the size. */
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

/** Restores the text of the schema's entries, as far as its table can be read. */
function mendSchema(old: Database.Database, file: string): void {
  readUntilDamage(file, () => {
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
      // An incomplete generation is useless: without its sum, `mend` deletes all ids.
      if (cut.some((name) => ID_TABLES.has(name))) db.exec(`DELETE FROM sums WHERE name = 'generations'`);
      db.exec(expectedSchema().find(([, name]) => name === 'quarantine_left')?.[3] ?? '');
      db.pragma(`user_version = ${VERSION}`);
    })();
  } finally {
    db.close();
  }
}

const ID_TABLES: ReadonlySet<string> = new Set(['generations', 'recent_ids', 'sealed_ids']);

/** @returns false when not all of it could be read */
function copyTable(db: Database.Database, old: Database.Database, table: string, file: string): boolean {
  const copyBy = (order: 'ASC' | 'DESC'): boolean =>
    readUntilDamage(file, () => {
      const select = old.prepare(`SELECT * FROM ${table} NOT INDEXED ORDER BY 1 ${order}`).raw();
      const columns = select.columns().map(({ name }) => name);
      const insert = db.prepare(insertInto(table, columns));
      for (const row of select.iterate() as IterableIterator<unknown[]>) insertIfValid(insert, row);
    });
  if (table === 'sqlite_sequence') db.exec('DELETE FROM sqlite_sequence');
  if (copyBy('ASC')) return true;
  // Rows behind a damaged page are read from the other end.
  copyBy('DESC');
  return false;
}

/** Leaves out a row that breaks a constraint: no program wrote it, and the sums show that one is missing. */
function insertIfValid(insert: Database.Statement, row: readonly unknown[]): void {
  try {
    insert.run(...row);
  } catch (error) {
    if (!errorCode(error).startsWith('SQLITE_CONSTRAINT')) throw error;
  }
}

/** @param columns of this format or the previous one */
function insertInto(table: string, columns: readonly string[]): string {
  const given = `SELECT ${columns.map((name) => `? AS ${name}`).join()}`;
  if (table === 'damaged' && !columns.includes('what'))
    return `INSERT INTO damaged SELECT 'record', seq, 1, '', found_at, '{}' FROM (${given})`;
  if ((table === 'quarantine' || table === 'dead_letters') && !columns.includes('crc'))
    return `INSERT INTO ${table} SELECT *, row_hash(${hashedColumns(table)}) FROM (${given})`;
  return `INSERT OR IGNORE INTO ${table} (${columns.join()}) ${given}`;
}

/** @returns false when damage interrupted it */
function readUntilDamage(file: string, read: () => void): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (isDamage(error, file)) return false;
    throw error;
  }
}
