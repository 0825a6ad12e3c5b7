import { MillraceError } from '../../core/errors.ts';
import { literal, tableName } from '../sql/dialects/dialect.ts';
import { presentColumns } from './columns.ts';
import type { Database } from './database.ts';

/** Table whose lines name users. */
export const PULLS = '_millrace_pulls';

/**
 * What a database holds and where it came from, in tables beside the rows:
 * - `_millrace_loads`: the files, and the sinks, that rows came from. `sha256` is empty for a file to be loaded again, and begins with
 *   `refused:` for one of which rows were refused; `shape` of a sink names its tables.
 * - `_millrace_events`: the load of each event's rows. `event` is a hash of source, id and body.
 * - `_millrace_duplicates`: other loads with an event that was there already; when its load is removed, they are loaded again.
 * - `_millrace_pulls`: what the service was asked for, of the loads that have whole answers (`pulls.ts`).
 * - `_millrace_tables`: the tables that are kept up to date, and a hash of their columns.
 */
export function ledgerIn({ sql }: Pick<Database, 'sql'>) {
  return {
    numbers: tableName(sql, '_millrace_load'),
    loads: tableName(sql, '_millrace_loads'),
    events: tableName(sql, '_millrace_events'),
    duplicates: tableName(sql, '_millrace_duplicates'),
    pulls: tableName(sql, PULLS),
    tables: tableName(sql, '_millrace_tables'),
    /** Only within a transaction. */
    vanished: tableName(sql, '_millrace_vanished'),
  };
}

/** Tables that every ledger has. Early ones had no pulls. */
export const LEDGER = ['_millrace_loads', '_millrace_tables', '_millrace_events', '_millrace_duplicates'];

/** File that stands for a backfill, which is loaded as a whole. */
export const BACKFILL = '_backfill.ndjson';

/**
 * Makes the tables of the ledger, in the caller's transaction. A ledger without pulls gets them by loading its backfills again.
 * @throws MillraceError database_refused when one of them, or a load that has pulls, is missing: rows that are there would be loaded
 * a second time
 */
export async function createLedger(database: Database): Promise<void> {
  const { numbers, loads, events, duplicates, pulls, tables } = ledgerIn(database);
  await database.createSchema();
  const present = await presentColumns(database);
  const absent = LEDGER.filter((name) => !present.has(name));
  if (absent.length > 0 && absent.length < LEDGER.length)
    throw notKnown(`it has tables _millrace_… and no table ${absent.join(' and no table ')}`);
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
${createPulls(pulls)}
CREATE TABLE IF NOT EXISTS ${tables} (name text PRIMARY KEY, shape text NOT NULL);`);
  if (absent.length === 0 && !present.has(PULLS))
    await database.query(`UPDATE ${loads} SET sha256 = '' WHERE file = $1`, [BACKFILL]);
  const lost = await database.query(
    `SELECT DISTINCT load FROM ${pulls} WHERE load NOT IN (SELECT load FROM ${loads}) ORDER BY 1`,
  );
  if (lost.length > 0) throw notKnown(`_millrace_loads has no row of load ${lost.join(', ')}`);
}

function notKnown(reason: string): MillraceError {
  return new MillraceError(
    'database_refused',
    `${reason}, so what was loaded is not known: restore a backup, or load into an empty schema or file`,
  );
}

/** Statement that makes the table of pulls if it is missing. @param table its name, quoted */
export function createPulls(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  load integer NOT NULL,
  user_id text NOT NULL,
  resource text NOT NULL,
  "table" text NOT NULL,
  provider text,
  since timestamptz,
  until timestamptz,
  began_at timestamptz NOT NULL
);`;
}

/** Stands before the hash of a file of which the database has refused rows. */
export const REFUSED = 'refused:';

/** The columns of a load, each with how a database's value is read. */
const LOAD = {
  load: Number,
  /** What the archive is known by. */
  archive: String,
  file: String,
  sha256: String,
  /** Of the tables it was loaded into. */
  shape: String,
  records: Number,
  /** Sealed records that were opened, and how many keys had been destroyed by then. */
  sealed: Number,
  destroyed: Number,
};

/** One load as the ledger has it. */
export type Load = { readonly [Name in keyof typeof LOAD]: ReturnType<(typeof LOAD)[Name]> };

const LOAD_NAMES = Object.keys(LOAD) as (keyof Load)[];

export async function readLoads(database: Database): Promise<Load[]> {
  const rows = await database.query(
    `SELECT ${LOAD_NAMES.join(', ')} FROM ${ledgerIn(database).loads} ORDER BY load`,
  );
  return rows.map(
    (row) => Object.fromEntries(LOAD_NAMES.map((name, at) => [name, LOAD[name](row[at])])) as unknown as Load,
  );
}

/** The number of a new load. Numbers are used once. */
export async function nextLoad(database: Database): Promise<number> {
  const [row] = await database.query(`SELECT nextval(${literal(ledgerIn(database).numbers)})`);
  return Number(row?.[0]);
}

export async function writeLoad(database: Database, load: Load): Promise<void> {
  const values = LOAD_NAMES.map((_, at) => `$${at + 1}`);
  await database.query(
    `INSERT INTO ${ledgerIn(database).loads} (${LOAD_NAMES.join(', ')}) VALUES (${values.join(', ')})`,
    LOAD_NAMES.map((name) => load[name]),
  );
}

/** For an archive that had no manifest when its first files were loaded, and so only a path. */
export async function renameArchive(database: Database, from: string, to: string): Promise<void> {
  const { loads } = ledgerIn(database);
  await database.query(`UPDATE ${loads} SET archive = $2 WHERE archive = $1`, [from, to]);
}

/** The events in `$1`, joined with commas. */
const KEYS = `SELECT CAST(key AS uuid) FROM unnest(string_to_array($1, ',')) AS keys(key)`;

/** Adds the events that no load has to this one. @param events 32 hex digits each @returns those that were added */
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
  const claimed = keysOf(rows);
  const others = events.filter((event) => !claimed.has(event));
  if (others.length > 0) {
    await database.query(
      `INSERT INTO ${duplicates} (event, load)
       SELECT DISTINCT event, CAST($2 AS integer) FROM ${known}
       WHERE load <> CAST($2 AS integer)
         AND event IN (${KEYS})`,
      [others.join(','), load],
    );
  }
  return claimed;
}

/** Moves events to a load that has more rows of them. @param events 32 hex digits each @returns those that `from` had */
export async function moveEvents(
  database: Database,
  from: number,
  to: number,
  events: readonly string[],
): Promise<Set<string>> {
  const rows = await database.query(
    `UPDATE ${ledgerIn(database).events} SET load = CAST($3 AS integer)
     WHERE load = CAST($2 AS integer)
       AND event IN (${KEYS})
     RETURNING CAST(event AS text)`,
    [events.join(','), from, to],
  );
  return keysOf(rows);
}

function keysOf(rows: readonly (readonly unknown[])[]): Set<string> {
  return new Set(rows.map(([event]) => String(event).replaceAll('-', '')));
}

/** Removes loads, their rows, and what the ledger has of them. */
export async function removeLoads(
  database: Database,
  tables: readonly string[],
  loads: readonly number[],
): Promise<void> {
  if (loads.length === 0) return;
  const list = loads.join(', ');
  for (const table of tables) await database.run(`DELETE FROM ${table} WHERE _load IN (${list})`);
  const { loads: known, events, duplicates, pulls } = ledgerIn(database);
  for (const table of [events, duplicates, pulls, known])
    await database.run(`DELETE FROM ${table} WHERE load IN (${list})`);
}

/** Marks files to be loaded again that have an event of a removed load. @returns whether there are any */
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
