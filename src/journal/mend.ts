import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { MillraceError } from '../core/errors.ts';
import { toRouteRecordJson, type RouteRecord } from '../core/route-record.ts';
import { Checkpoints } from './checkpoints.ts';
import { SAVED_UP_TO } from './dedup.ts';
import { SEGMENTS, type KnownSegments } from './events.ts';
import { ROUTES } from './route-records.ts';
import { hashedColumns, insertAside, lastKey, setLastKey, type AsideTable } from './schema.ts';
import { DROP_KEY } from './set-aside.ts';
import { NOTE, NOTE_NUMBER, readSecondNote, type SecondNote } from './second-note.ts';
import { saltOf, Segment, segmentsIn } from './segments/segment.ts';
import { sumUp, wrongSums, type Summed, type WrongSum } from './sums.ts';

/** Something of a journal that was damaged or missing: `n` events or rows are lost, 0 where all was repaired. */
export interface Repair {
  readonly what: 'record' | 'segment' | 'quarantine' | 'dead_letters' | 'database' | 'note';
  readonly n: number;
  readonly detail: string;
}

/** What a person says of a journal that has lost its cursors and routes. */
export interface Recovery {
  /** Each gets all events of the journal. */
  readonly sinks: readonly string[];
  readonly routes: RouteRecord;
}

/** Without these tables some deliveries are sent again, and none is lost. */
const AHEAD = ['settled_ahead', 'died_ahead'] as const;

/**
 * Compares the rows of the database with their sums and the second note, and repairs what differs. Inside a transaction.
 * @throws MillraceError journal_damaged when neither says how far the sinks are
 */
export function mend(db: Database.Database, folder: string, recovery?: Recovery): Repair[] {
  const read = readSecondNote(folder);
  const note = read === 'damaged' ? null : read;
  const checkpoints = new Checkpoints(db);
  const wrong = wrongSums(db);
  const repairs: Repair[] = [];
  const say = (what: Repair['what'], detail: string, n = 0): void => void repairs.push({ what, n, detail });
  if (read === 'damaged') say('note', `${join(folder, NOTE)} was damaged, and is written again`);
  if (isIn(wrong, 'cursors', 'checkpoints') || isOlder(checkpoints, note)) {
    say('database', restoreState(db, folder, note, wrong, recovery));
    // Hashes of ids say nothing without their key.
    if (checkpoints.load(DROP_KEY) === null && db.prepare('DELETE FROM dropped_letters').run().changes > 0)
      say('database', 'the key of dropped events is lost: reconcile no longer knows which a person dropped');
  }
  if (isIn(wrong, ...AHEAD)) {
    for (const table of AHEAD) db.exec(`DELETE FROM ${table}`);
    say('database', 'what is settled ahead of the cursors was damaged: some deliveries are sent again');
  }
  if (wrong.has('generations') || hasBadIds(db)) {
    for (const table of ['recent_ids', 'sealed_ids', 'generations']) db.exec(`DELETE FROM ${table}`);
    checkpoints.remove(SAVED_UP_TO);
    say('database', 'ids of earlier events were damaged: a repeated event may be forwarded again');
  }
  for (const table of ['quarantine', 'dead_letters'] as const)
    mendEvents(db, table, note, wrong.get(table), say);
  if (isIn(wrong, 'hour_counts', 'dropped_letters', 'erased_alone', 'quarantine_entered', 'damaged'))
    say('database', 'counts were damaged: reconcile is not exact for the time before');
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

/** True when the database has lost its newest transactions: the note was written after one that it lacks. */
function isOlder(checkpoints: Checkpoints, note: SecondNote | null): boolean {
  return note !== null && note.number > Number(checkpoints.load(NOTE_NUMBER) ?? 0);
}

/** Restores cursors and checkpoints. @returns what was done, in words */
function restoreState(
  db: Database.Database,
  folder: string,
  note: SecondNote | null,
  wrong: ReadonlyMap<Summed, WrongSum>,
  recovery: Recovery | undefined,
): string {
  if (note === null) return recoverState(db, folder, recovery);
  const checkpoints = new Checkpoints(db);
  const rows = db.prepare('SELECT sink, seq FROM cursors').raw().all() as [string, number][];
  const own = new Map(wrong.has('cursors') ? [] : rows);
  // Sinks that only the database has were opened after the note, unless the database is older.
  const more = isOlder(checkpoints, note)
    ? []
    : [...own].filter(([sink]) => !note.cursors.some(([name]) => name === sink));
  const cursors = note.cursors.map(([sink, seq]) => [sink, Math.min(seq, own.get(sink) ?? seq)] as const);
  db.exec('DELETE FROM cursors');
  const insert = db.prepare('INSERT INTO cursors VALUES (?, ?)');
  for (const cursor of [...cursors, ...more]) insert.run(...cursor);
  // The database's own position belongs to its own counts.
  const position = wrong.has('checkpoints') ? null : checkpoints.load(SEGMENTS);
  if (wrong.has('checkpoints')) db.exec('DELETE FROM checkpoints');
  for (const [key, value] of note.checkpoints)
    checkpoints.save(key, key === SEGMENTS && position !== null ? withSegmentsOf(position, value) : value);
  const at = new Date(note.writtenAt).toISOString();
  return `cursors and routes were damaged or missing, and are those of ${NOTE}, written ${at}: events sent since then are sent again`;
}

/** The database's position with the note's list of segments. */
function withSegmentsOf(position: string, noted: string): string {
  const own = JSON.parse(position) as KnownSegments;
  const { segments } = JSON.parse(noted) as KnownSegments;
  return JSON.stringify({ ...own, segments });
}

function recoverState(db: Database.Database, folder: string, recovery: Recovery | undefined): string {
  if (recovery === undefined) {
    throw new MillraceError(
      'journal_damaged',
      `${folder}: the database has lost the cursors of the sinks, and ${NOTE} is missing or damaged; ${eventsIn(folder)}. ` +
        'Restore one of the two files, or say from where each sink continues: millrace journal recover --from-first SINK, or --from TIME',
    );
  }
  for (const table of ['cursors', 'checkpoints', 'hour_counts', ...AHEAD]) db.exec(`DELETE FROM ${table}`);
  const insert = db.prepare('INSERT INTO cursors VALUES (?, 0)');
  for (const sink of recovery.sinks) insert.run(sink);
  new Checkpoints(db).save(ROUTES, JSON.stringify(toRouteRecordJson(recovery.routes)));
  return 'cursors and routes were missing, and were set by millrace journal recover';
}

/** The events of the segments, in words. */
function eventsIn(folder: string): string {
  let [count, since, until] = [0, Infinity, 0];
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

/** True for values that no program writes, which would stop the start when they are read. */
function hasBadIds(db: Database.Database): boolean {
  const bad = `typeof(hash) <> 'blob' OR length(hash) NOT IN (12, 20) OR typeof(at) <> 'integer'`;
  return db.prepare(`SELECT 1 FROM recent_ids WHERE ${bad} LIMIT 1`).get() !== undefined;
}

/** The columns of an event, readable whatever values a damaged row has. */
const LEGIBLE = `coalesce(CAST(id AS TEXT), ''), coalesce(CAST(source AS TEXT), ''), coalesce(CAST(type AS TEXT), ''), team, user,
  client_user, CAST(coalesce(received_at, 0) AS INTEGER), CASE WHEN json_valid(headers) THEN headers ELSE '{}' END, NULL,
  coalesce(CAST(body AS BLOB), x'')`;

/** Quarantines damaged rows as far as they can be read, and reports how many are missing. */
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
  const select = db.prepare(`SELECT ${reasons}, ${LEGIBLE} FROM ${table} WHERE key = ?`).raw();
  for (const key of keys) {
    const row = select.get(key) as unknown[];
    db.prepare(`DELETE FROM ${table} WHERE key = ?`).run(key);
    db.prepare(insertAside('quarantine')).run(...row);
  }
  const { length } = keys;
  if (length > 0)
    say(table, `${length} rows of ${table} were damaged, and are quarantined if readable`, length);
  const given = lastKey(db, table);
  const noted = note?.keys[table] ?? 0;
  // An older database makes its dead letters again, because its cursors are older too.
  const lostKeys = table === 'quarantine' ? noted - given : 0;
  const lost = wrong === undefined ? lostKeys : (wrong.rows ?? note?.rows[table] ?? 0) - wrong.found;
  if (lost > 0) say(table, `${lost} rows of ${table} are gone`, lost);
  const used = db.prepare(`SELECT max(key) FROM ${table}`).pluck().get() as number | null;
  const highest = Math.max(noted, used ?? 0);
  if (highest > given) setLastKey(db, table, highest);
}
