import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { MillraceError } from '../core/errors.ts';
import type { RouteRecord } from '../core/route-record.ts';
import { SAVED_UP_TO } from './dedup.ts';
import { SEGMENTS, type KnownSegments } from './events.ts';
import { hashedColumns, insertAside, lastKey, setLastKey, type AsideTable } from './schema.ts';
import { NOTE, NOTE_NUMBER, readSecondNote, type SecondNote } from './second-note.ts';
import { saltOf, Segment, segmentsIn } from './segments/segment.ts';
import { sumUp, wrongSums, type Summed, type WrongSum } from './sums.ts';

/** What of a journal was not what it should be: `n` of it are lost, 0 where all of it was mended. */
export interface Repair {
  readonly what: 'record' | 'segment' | 'quarantine' | 'dead_letters' | 'database' | 'note';
  readonly n: number;
  readonly detail: string;
}

/** How far the sinks are, and where events were to go, as a person says. */
export interface Recovery {
  /** All get what the journal holds from its first event on. */
  readonly sinks: readonly string[];
  readonly routes: RouteRecord;
}

const TABLES_OF_EVENTS = ['quarantine', 'dead_letters'] as const;
/** What they say can be left out: what they are about is sent once more. */
const AHEAD = ['settled_ahead', 'died_ahead'] as const;

/**
 * Holds the rows of the database against their sums and the second note, and mends what differs. Inside a transaction.
 * @throws MillraceError journal_damaged when nothing says how far the sinks are
 */
export function mend(db: Database.Database, folder: string, recovery?: Recovery): Repair[] {
  const read = readSecondNote(folder);
  const note = read === 'damaged' ? null : read;
  const wrong = wrongSums(db);
  const repairs: Repair[] = [];
  const say = (what: Repair['what'], detail: string, n = 0): void => void repairs.push({ what, n, detail });
  if (read === 'damaged') say('note', `${join(folder, NOTE)} was damaged, and is written again`);
  if (isIn(wrong, 'cursors', 'checkpoints') || isOlder(db, note)) {
    say('database', restoreState(db, folder, note, wrong, recovery));
  }
  if (isIn(wrong, ...AHEAD)) {
    for (const table of AHEAD) db.exec(`DELETE FROM ${table}`);
    say('database', 'what sinks had settled ahead of their cursors was damaged: they get it again');
  }
  if (wrong.has('generations') || hasBadIds(db)) {
    for (const table of ['recent_ids', 'sealed_ids', 'generations']) db.exec(`DELETE FROM ${table}`);
    db.prepare('DELETE FROM checkpoints WHERE key = ?').run(SAVED_UP_TO);
    say('database', 'ids of earlier events were damaged: one that comes again may be forwarded again');
  }
  for (const table of TABLES_OF_EVENTS) mendEvents(db, table, note, wrong.get(table), say);
  if (isIn(wrong, 'hour_counts', 'dropped_letters', 'erased_alone', 'quarantine_entered', 'damaged'))
    say('database', 'counts were damaged: what reconcile says of the time before is not exact');
  if (wrong.size > 0) sumUp(db);
  const now = Date.now();
  const insert = db.prepare(`INSERT OR REPLACE INTO damaged VALUES (?, ?, ?, ?, ?, '{}')`);
  for (const [index, { what, n, detail }] of repairs.entries())
    if (what !== 'note') insert.run(what, now + index, n, detail, now);
  return repairs;
}

function isIn(wrong: ReadonlyMap<Summed, WrongSum>, ...names: readonly Summed[]): boolean {
  return names.some((name) => wrong.has(name));
}

/** Whether the database was put back by the loss of its newest transactions: the note was written after one that it lacks. */
function isOlder(db: Database.Database, note: SecondNote | null): boolean {
  return note !== null && note.number > Number(checkpoint(db, NOTE_NUMBER) ?? 0);
}

function checkpoint(db: Database.Database, key: string): string | null {
  const value = db.prepare('SELECT value FROM checkpoints WHERE key = ?').pluck().get(key);
  return typeof value === 'string' ? value : null;
}

/** @returns what was done */
function restoreState(
  db: Database.Database,
  folder: string,
  note: SecondNote | null,
  wrong: ReadonlyMap<Summed, WrongSum>,
  recovery: Recovery | undefined,
): string {
  if (note === null) return recoverState(db, folder, recovery);
  const rows = db.prepare('SELECT sink, seq FROM cursors').raw().all() as [string, number][];
  const own = new Map(wrong.has('cursors') ? [] : rows);
  // Sinks that the database alone knows were opened after the note, unless it is the database that is older.
  const more = isOlder(db, note)
    ? []
    : [...own].filter(([sink]) => !note.cursors.some(([name]) => name === sink));
  const cursors = note.cursors.map(([sink, seq]) => [sink, Math.min(seq, own.get(sink) ?? seq)] as const);
  db.exec('DELETE FROM cursors');
  const insert = db.prepare('INSERT INTO cursors VALUES (?, ?)');
  for (const cursor of [...cursors, ...more]) insert.run(...cursor);
  // What frames say behind the position of the database's own counts is not counted yet.
  const position = wrong.has('checkpoints') ? null : checkpoint(db, SEGMENTS);
  if (wrong.has('checkpoints')) db.exec('DELETE FROM checkpoints');
  const save = db.prepare('INSERT OR REPLACE INTO checkpoints VALUES (?, ?)');
  for (const [key, value] of note.checkpoints)
    save.run(key, key === SEGMENTS && position !== null ? withSegmentsOf(position, value) : value);
  const at = new Date(note.writtenAt).toISOString();
  return `how far the sinks are was damaged or gone, and is taken from ${NOTE}, written ${at}: what came to sinks since then comes again`;
}

/** The newer list of segments, with the older position. */
function withSegmentsOf(position: string, noted: string): string {
  const own = JSON.parse(position) as KnownSegments;
  const { segments } = JSON.parse(noted) as KnownSegments;
  return JSON.stringify({ ...own, segments });
}

function recoverState(db: Database.Database, folder: string, recovery: Recovery | undefined): string {
  if (recovery === undefined) {
    throw new MillraceError(
      'journal_damaged',
      `${folder}: the database does not say how far the sinks are, and ${NOTE} is missing or damaged; ${heldIn(folder)}. ` +
        'Restore one of the two, or say from where each sink continues: millrace journal recover --from-first SINK, or --from TIME',
    );
  }
  for (const table of ['cursors', 'checkpoints', 'hour_counts', ...AHEAD]) db.exec(`DELETE FROM ${table}`);
  const insert = db.prepare('INSERT INTO cursors VALUES (?, 0)');
  for (const sink of recovery.sinks) insert.run(sink);
  db.prepare(`INSERT INTO checkpoints VALUES ('routes', ?)`).run(JSON.stringify(recovery.routes));
  return 'how far the sinks are was gone, and was set by hand';
}

/** What the segments hold, in words. */
function heldIn(folder: string): string {
  let count = 0;
  let [since, until] = [Infinity, 0];
  const names = segmentsIn(folder);
  const salt = saltOf(folder, names);
  for (const name of names) {
    if (salt === null) break;
    const segment = Segment.open(folder, name, salt);
    const walker = segment.walk(0);
    for (let item = walker.next(); item !== null; item = walker.next()) {
      if (item.kind !== 'record' || item.erased) continue;
      count += 1;
      [since, until] = [Math.min(since, item.receivedAt), Math.max(until, item.receivedAt)];
    }
    segment.close();
  }
  const files = `${names.length} segments are there`;
  if (count === 0) return files;
  const [first, last] = [since, until].map((time) => new Date(time).toISOString());
  return `${files}, with ${count} events received from ${first} to ${last}, which may all wait`;
}

/** Of values that no program writes the memory of ids would stop a start. */
function hasBadIds(db: Database.Database): boolean {
  const bad = `typeof(hash) <> 'blob' OR length(hash) NOT IN (12, 20) OR typeof(at) <> 'integer'`;
  return db.prepare(`SELECT 1 FROM recent_ids WHERE ${bad} LIMIT 1`).get() !== undefined;
}

/** The columns of an event, whatever values a damaged row has. */
const LEGIBLE = `coalesce(CAST(id AS TEXT), ''), coalesce(CAST(source AS TEXT), ''), coalesce(CAST(type AS TEXT), ''), team, user,
  client_user, CAST(coalesce(received_at, 0) AS INTEGER), CASE WHEN json_valid(headers) THEN headers ELSE '{}' END, NULL,
  coalesce(CAST(body AS BLOB), x'')`;

/** A row that is damaged goes to quarantine as far as it can be read; rows that are gone are named by their number. */
function mendEvents(
  db: Database.Database,
  table: AsideTable,
  note: SecondNote | null,
  wrong: WrongSum | undefined,
  say: (what: Repair['what'], detail: string, n?: number) => void,
): void {
  const bad = `crc IS NOT row_hash(${hashedColumns(table)})`;
  const keys = db.prepare(`SELECT key FROM ${table} WHERE ${bad}`).pluck().all() as number[];
  const reasons = `'[{"code":"damaged","detail":"the row of ${table} is damaged"}]'`;
  for (const key of keys) {
    const row = db
      .prepare(`SELECT ${reasons}, ${LEGIBLE} FROM ${table} WHERE key = ?`)
      .raw()
      .get(key) as unknown[];
    db.prepare(`DELETE FROM ${table} WHERE key = ?`).run(key);
    db.prepare(insertAside('quarantine')).run(...row);
  }
  if (keys.length > 0)
    say(
      table,
      `${keys.length} rows of ${table} were damaged, and are in quarantine as far as they could be read`,
      keys.length,
    );
  const given = lastKey(db, table);
  const noted = note?.keys[table] ?? 0;
  // In a database that is older, dead letters are made again: its cursors are older, too.
  const gone =
    wrong !== undefined
      ? (wrong.rows ?? note?.rows[table] ?? 0) - wrong.found
      : table === 'quarantine'
        ? noted - given
        : 0;
  if (gone > 0) say(table, `${gone} rows of ${table} are gone`, gone);
  const most = db.prepare(`SELECT max(key) FROM ${table}`).pluck().get() as number | null;
  if (Math.max(noted, most ?? 0) > given) setLastKey(db, table, Math.max(noted, most ?? 0));
}
