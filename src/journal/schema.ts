import Database from 'better-sqlite3';

/** The only format that is read; the first start converts one of the previous version. */
export const VERSION = 5;
export const VERSION_BEFORE = 4;
/** Bytes of a page. */
export const PAGE = 8192;

/** Columns of an event, the same in every table that has events. */
export const ROW_COLUMNS = 'id, source, type, team, user, client_user, received_at, headers, handling';
export const EVENT_COLUMNS = `${ROW_COLUMNS}, body`;

/** Columns before those of the event, in order. */
export const ABOUT = {
  quarantine: ['reasons'],
  dead_letters: ['sink', 'destination', 'code', 'reason', 'attempts', 'died_at', 'seq'],
} as const;

/** A table of events that were set aside. Each row has the `row_hash` of its other columns. */
export type AsideTable = keyof typeof ABOUT;

/** The columns that the hash of a row covers. */
export const hashedColumns = (table: AsideTable): string => `${ABOUT[table].join()}, ${EVENT_COLUMNS}`;

/** SQL that adds a row of the values of `hashedColumns`. */
export function insertAside(table: AsideTable): string {
  const columns = hashedColumns(table);
  const given = columns.replaceAll(/\w+/g, '? AS $&');
  return `INSERT INTO ${table} (${columns}, crc) SELECT *, row_hash(${columns}) FROM (SELECT ${given})`;
}

/** The highest key ever given. */
export function lastKey(db: Database.Database, table: AsideTable): number {
  return Number(db.prepare('SELECT max(seq) FROM sqlite_sequence WHERE name = ?').pluck().get(table) ?? 0);
}

export function setLastKey(db: Database.Database, table: AsideTable, key: number): void {
  db.prepare('DELETE FROM sqlite_sequence WHERE name = ?').run(table);
  db.prepare('INSERT INTO sqlite_sequence VALUES (?, ?)').run(table, key);
}

const EVENT_DDL = `
  id TEXT NOT NULL, source TEXT NOT NULL, type TEXT NOT NULL, team TEXT, user TEXT, client_user TEXT,
  received_at INTEGER NOT NULL, headers TEXT NOT NULL, handling TEXT, body BLOB NOT NULL, crc INTEGER NOT NULL`;

/** Tables first, then indexes: VACUUM keeps their order. */
export const DDL = `
-- What was found damaged or lost, and how many of the events each sink had not had, as JSON. Records that can be read are quarantined too.
CREATE TABLE damaged (what TEXT NOT NULL, seq INTEGER NOT NULL, n INTEGER NOT NULL, detail TEXT NOT NULL, found_at INTEGER NOT NULL,
  waiting TEXT NOT NULL, PRIMARY KEY (what, seq)) WITHOUT ROWID;
CREATE TABLE cursors (sink TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
-- What is settled ahead of the cursors: the note of the feed's last move, and dead letters.
CREATE TABLE settled_ahead (sink TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE died_ahead (sink TEXT NOT NULL, seq INTEGER NOT NULL, destination TEXT);
CREATE TABLE checkpoints (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE quarantine (key INTEGER PRIMARY KEY AUTOINCREMENT, reasons TEXT NOT NULL, ${EVENT_DDL});
CREATE TABLE dead_letters (
  key INTEGER PRIMARY KEY AUTOINCREMENT, sink TEXT NOT NULL, destination TEXT, code TEXT NOT NULL, reason TEXT NOT NULL,
  attempts INTEGER NOT NULL, died_at INTEGER NOT NULL, seq INTEGER NOT NULL, ${EVENT_DDL});
-- Quarantined events that have entries in the log of receipts.
CREATE TABLE quarantine_entered (key INTEGER PRIMARY KEY);
-- Ids without a record in the segments: of quarantined events, and of events whose segment was removed.
CREATE TABLE recent_ids (n INTEGER PRIMARY KEY, hash BLOB NOT NULL, at INTEGER NOT NULL);
-- age: milliseconds before the newest id of the generation.
CREATE TABLE sealed_ids (
  generation INTEGER, hash BLOB, age INTEGER, PRIMARY KEY (generation, hash)) WITHOUT ROWID;
CREATE TABLE generations (
  generation INTEGER PRIMARY KEY, last_at INTEGER NOT NULL, ids INTEGER NOT NULL, filter BLOB NOT NULL);
-- Events by hour of receipt and by what became of them; kept longer than the events.
CREATE TABLE hour_counts (
  hour INTEGER NOT NULL, kind TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (hour, kind)) WITHOUT ROWID;
-- Dead letters and quarantined events that a person dropped, by keyed hashes of their ids.
CREATE TABLE dropped_letters (
  sink TEXT NOT NULL, id TEXT NOT NULL, received_at INTEGER NOT NULL, PRIMARY KEY (sink, id)) WITHOUT ROWID;
-- Events erased before they came to a sink.
CREATE TABLE erased_alone (
  sink TEXT NOT NULL, seq INTEGER NOT NULL, received_at INTEGER NOT NULL, PRIMARY KEY (sink, seq)) WITHOUT ROWID;
-- Number of rows of each table and the sum of their hashes, kept by triggers.
CREATE TABLE sums (name TEXT PRIMARY KEY, n INTEGER NOT NULL, total INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX died_ahead_by_seq ON died_ahead (sink, seq);
-- Rows are counted in these small indexes, not in the tables with their bodies.
CREATE INDEX quarantine_by_id ON quarantine (id);
CREATE INDEX dead_letters_by_seq ON dead_letters (sink, seq);
CREATE TRIGGER quarantine_left AFTER DELETE ON quarantine BEGIN DELETE FROM quarantine_entered WHERE key = old.key; END;`;

/** A row of `sqlite_schema`. */
export type SchemaRow = readonly [type: string, name: string, table: string, sql: string | null];

/** The schema of a journal's database, without the table of an interrupted scrubbing. */
export function schemaRows(db: Database.Database): SchemaRow[] {
  const rows = db.prepare(
    `SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name <> 'scrub' ORDER BY type, name`,
  );
  return rows.raw().all() as SchemaRow[];
}

let expected: readonly SchemaRow[] | null = null;

export function expectedSchema(): readonly SchemaRow[] {
  if (expected === null) {
    const db = new Database(':memory:');
    db.exec(DDL);
    expected = schemaRows(db);
    db.close();
  }
  return expected;
}
