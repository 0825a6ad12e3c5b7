import { literal, tableName } from '../sql/dialects/dialect.ts';
import type { Database } from './database.ts';

/**
 * What a database holds and where it came from, in tables beside the rows:
 * - `_millrace_loads`: the files, and the sinks, that rows came from. `sha256` is empty for one to be loaded again, and begins with
 *   `refused:` for one of which rows were refused; `shape` of a sink names its tables.
 * - `_millrace_events`: which load an event's rows came with, each event once. `event` is a hash of source, id and body.
 * - `_millrace_duplicates`: loads that held an event too which was there already; when the first goes, they are loaded again.
 * - `_millrace_tables`: the tables that are kept, and a hash of their columns.
 */
export function ledgerIn({ sql }: Pick<Database, 'sql'>) {
  return {
    numbers: tableName(sql, '_millrace_load'),
    loads: tableName(sql, '_millrace_loads'),
    events: tableName(sql, '_millrace_events'),
    duplicates: tableName(sql, '_millrace_duplicates'),
    tables: tableName(sql, '_millrace_tables'),
  };
}

/** In a transaction of the caller's. */
export async function createLedger(database: Database): Promise<void> {
  const { numbers, loads, events, duplicates, tables } = ledgerIn(database);
  await database.createSchema();
  await database.run(`
CREATE SEQUENCE IF NOT EXISTS ${numbers};
CREATE TABLE IF NOT EXISTS ${loads} (
  load integer PRIMARY KEY,
  archive text NOT NULL,
  file text NOT NULL,
  sha256 text NOT NULL,
  shape text NOT NULL,
  records integer NOT NULL,
  sealed integer NOT NULL,
  destroyed integer NOT NULL,
  loaded_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS ${events} (event uuid PRIMARY KEY, load integer NOT NULL);
CREATE TABLE IF NOT EXISTS ${duplicates} (event uuid NOT NULL, load integer NOT NULL);
CREATE TABLE IF NOT EXISTS ${tables} (name text PRIMARY KEY, shape text NOT NULL);`);
}

/** In front of the hash of a file of which the database has refused rows. */
export const REFUSED = 'refused:';

/** One load as the ledger has it. */
export interface Load {
  readonly load: number;
  /** What the archive is known by. */
  readonly archive: string;
  readonly file: string;
  readonly sha256: string;
  /** Of the tables it was loaded into. */
  readonly shape: string;
  readonly records: number;
  /** Sealed records that were opened, and how many keys had been destroyed by then. */
  readonly sealed: number;
  readonly destroyed: number;
}

const LOAD_COLUMNS = 'load, archive, file, sha256, shape, records, sealed, destroyed';

export async function readLoads(database: Database): Promise<Load[]> {
  const rows = await database.query(`SELECT ${LOAD_COLUMNS} FROM ${ledgerIn(database).loads} ORDER BY load`);
  return rows.map(([load, archive, file, sha256, shape, records, sealed, destroyed]) => ({
    load: Number(load),
    archive: String(archive),
    file: String(file),
    sha256: String(sha256),
    shape: String(shape),
    records: Number(records),
    sealed: Number(sealed),
    destroyed: Number(destroyed),
  }));
}

/** The number of a new load; numbers are never used again. */
export async function nextLoad(database: Database): Promise<number> {
  const [row] = await database.query(`SELECT nextval(${literal(ledgerIn(database).numbers)})`);
  return Number(row?.[0]);
}

export async function writeLoad(database: Database, done: Load): Promise<void> {
  const { load, archive, file, sha256, shape, records, sealed, destroyed } = done;
  await database.query(
    `INSERT INTO ${ledgerIn(database).loads} (${LOAD_COLUMNS})
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [load, archive, file, sha256, shape, records, sealed, destroyed],
  );
}

/** A folder had no manifest yet, and so no other name than its path, when some of its files were loaded. */
export async function renameArchive(database: Database, from: string, to: string): Promise<void> {
  const { loads } = ledgerIn(database);
  await database.query(`UPDATE ${loads} SET archive = $2 WHERE archive = $1`, [from, to]);
}

/**
 * Takes the events that no load has for this one.
 * @param events 32 hex digits each
 * @returns those that are its own now
 */
export async function claimEvents(
  database: Database,
  load: number,
  events: readonly string[],
): Promise<Set<string>> {
  const { events: known, duplicates } = ledgerIn(database);
  const rows = await database.query(
    `INSERT INTO ${known} (event, load)
     SELECT DISTINCT CAST(key AS uuid), CAST($2 AS integer) FROM unnest(string_to_array($1, ',')) AS keys(key)
     ORDER BY 1
     ON CONFLICT DO NOTHING RETURNING CAST(event AS text)`,
    [events.join(','), load],
  );
  const claimed = new Set(rows.map(([event]) => String(event).replaceAll('-', '')));
  const others = events.filter((event) => !claimed.has(event));
  if (others.length > 0) {
    await database.query(
      `INSERT INTO ${duplicates} (event, load)
       SELECT DISTINCT event, CAST($2 AS integer) FROM ${known}
       WHERE load <> CAST($2 AS integer)
         AND event IN (SELECT CAST(key AS uuid) FROM unnest(string_to_array($1, ',')) AS keys(key))`,
      [others.join(','), load],
    );
  }
  return claimed;
}

/**
 * Moves events from one load to another that has more rows of them.
 * @param events 32 hex digits each
 * @returns those that the first load had
 */
export async function moveEvents(
  database: Database,
  from: number,
  to: number,
  events: readonly string[],
): Promise<Set<string>> {
  const rows = await database.query(
    `UPDATE ${ledgerIn(database).events} SET load = CAST($3 AS integer)
     WHERE load = CAST($2 AS integer)
       AND event IN (SELECT CAST(key AS uuid) FROM unnest(string_to_array($1, ',')) AS keys(key))
     RETURNING CAST(event AS text)`,
    [events.join(','), from, to],
  );
  return new Set(rows.map(([event]) => String(event).replaceAll('-', '')));
}

/** Removes all that came with some loads, for good. */
export async function removeLoads(
  database: Database,
  tables: readonly string[],
  loads: readonly number[],
): Promise<void> {
  if (loads.length === 0) return;
  const list = loads.join(', ');
  for (const table of tables) await database.run(`DELETE FROM ${table} WHERE _load IN (${list})`);
  const { loads: known, events, duplicates } = ledgerIn(database);
  for (const table of [events, duplicates, known])
    await database.run(`DELETE FROM ${table} WHERE load IN (${list})`);
}

/**
 * What was removed may be held by another file, which was passed over as the event was there already: it is to be loaded
 * again.
 * @returns whether there is one
 */
export async function reviveDuplicates(database: Database): Promise<boolean> {
  const { loads, events, duplicates } = ledgerIn(database);
  const rows = await database.query(
    `UPDATE ${loads} SET sha256 = '' WHERE load IN (
       SELECT load FROM ${duplicates} AS held
       WHERE NOT EXISTS (SELECT 1 FROM ${events} AS known WHERE known.event = held.event)
     ) RETURNING load`,
  );
  return rows.length > 0;
}
