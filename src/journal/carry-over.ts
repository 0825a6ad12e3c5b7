import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type Database from 'better-sqlite3';
import { MillraceError } from '../core/errors.ts';
import { Checkpoints } from './checkpoints.ts';
import { EVENT_COLUMNS, sqliteCode, VERSION } from './database.ts';
import { SAVED_UP_TO } from './dedup.ts';
import { Events, SEGMENTS, type EventsOptions } from './events.ts';
import { Tally } from './hour-counts.ts';
import { eventOf, type EventRow, type Handled } from './rows.ts';
import { erasedMark, NO_ID, partsAt, spoil } from './segments/format.ts';
import { encodeRecords } from './segments/records.ts';
import { segmentsIn } from './segments/segment.ts';

/** Milliseconds between two times that progress is told. */
const TELL_EVERY = 5000;
/** Body bytes, and events, of one frame. */
const FRAME = { bytes: 8 * 2 ** 20, count: 4096 };

type Found = [...row: EventRow, body: Buffer, crc: number | null, seq: number];

/**
 * Carries the events of a journal of format 3 from its table over into segments, each under its seq. The table is there
 * until all of them are on disk: what a crash has left half done is done again from its beginning.
 * @param onProgress told now and then how many events are done, of how many
 */
export function carryOver(
  db: Database.Database,
  options: EventsOptions,
  onProgress?: (done: number, total: number) => void,
): void {
  if (Number(db.pragma('user_version', { simple: true })) === VERSION) return;
  const checkpoints = new Checkpoints(db);
  removeUnfinished(options.path, checkpoints);
  const one = (sql: string): number => Number(db.prepare(sql).pluck().get() ?? 0);
  const lastSeq = one(`SELECT max(seq) FROM sqlite_sequence WHERE name = 'events'`);
  const firstSeq = one('SELECT min(seq) FROM events') || lastSeq + 1;
  const events = new Events(db, checkpoints, { ...options, least: firstSeq - 1 });
  let waiting: Found[] = [];
  let bytes = 0;
  let told = Date.now();
  const write = (): void => {
    const now = Date.now();
    writeFrame(events, waiting, now);
    if (now - told > TELL_EVERY) {
      onProgress?.(events.lastSeq - firstSeq + 1, lastSeq - firstSeq + 1);
      told = now;
    }
    waiting = [];
    bytes = 0;
  };
  let isDamaged = false;
  const onDamage = (): void => void (isDamaged = true);
  for (const found of readable(db, firstSeq, lastSeq, onDamage)) {
    const seq = found[11];
    // A page of the table that cannot be read: its seqs have no record, and are told as damaged.
    const isBehindHole = seq !== events.lastSeq + waiting.length + 1;
    if (isBehindHole || bytes > FRAME.bytes || waiting.length === FRAME.count) write();
    events.log.skipTo(seq - 1 - waiting.length);
    waiting.push(found);
    bytes += found[9].length;
  }
  write();
  events.log.skipTo(lastSeq);
  db.transaction(() => {
    events.save();
    db.prepare('INSERT OR REPLACE INTO checkpoints VALUES (?, ?)').run(SAVED_UP_TO, String(lastSeq));
    db.pragma(`user_version = ${VERSION}`);
    dropEvents(db, isDamaged);
  })();
  events.log.close();
  // What was in the table stays in free pages otherwise, and the file as large as it was.
  try {
    db.exec('VACUUM');
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_FULL') throw error;
  }
  db.pragma('wal_checkpoint(TRUNCATE)');
}

/** @param isDamaged a page that cannot be read cannot be given back: then the rebuilding that follows leaves out the table */
function dropEvents(db: Database.Database, isDamaged: boolean): void {
  if (!isDamaged) return void db.exec('DROP TABLE events');
  db.unsafeMode(true);
  db.pragma('writable_schema = ON');
  db.exec(`DELETE FROM sqlite_master WHERE name = 'events'`);
  db.pragma('writable_schema = RESET');
  db.unsafeMode(false);
}

/** @throws MillraceError journal_unreadable when segments are there that no carrying over has begun */
function removeUnfinished(folder: string, checkpoints: Checkpoints): void {
  const names = segmentsIn(folder);
  if (names.length > 0 && checkpoints.load(SEGMENTS) === null) {
    const detail = `${join(folder, names[0] ?? '')} is newer than the database beside it: they are not of one journal`;
    throw new MillraceError('journal_unreadable', detail);
  }
  for (const name of names) rmSync(join(folder, name));
}

/** Counted when they came, and known among the ids of the tables. */
function writeFrame(events: Events, all: readonly Found[], now: number): void {
  if (all.length === 0) return;
  const frame = events.newFrame();
  const records = Buffer.from(encodeRecords(all.map(handledOf)).buffer);
  let at = 0;
  for (const found of all) {
    frame.add(records, at, NO_ID);
    if (isErased(found)) erasedMark().copy(records, at);
    else if (!isSound(found)) spoil(records, at);
    at += partsAt(records, at).size;
  }
  events.append(frame, new Tally(), now);
}

/** What of a damaged row is no JSON any more is left out. */
function handledOf(found: Found): Handled {
  const row = found.slice(0, 9) as unknown as EventRow;
  const body = isErased(found) ? Buffer.alloc(0) : found[9];
  try {
    const { handling, ...event } = eventOf(row, body, 0);
    return { event, handling };
  } catch {
    return { event: eventOf(row.with(7, '{}').with(8, null) as unknown as EventRow, body, 0) };
  }
}

function isErased(found: Found): boolean {
  return found[8]?.includes('"erased":true') === true;
}

/** Rows in order, past pages of the database that cannot be read. */
function* readable(
  db: Database.Database,
  firstSeq: number,
  lastSeq: number,
  onDamage: () => void,
): Generator<Found> {
  const columns = `${EVENT_COLUMNS}, crc, seq`;
  const following = db.prepare(`SELECT ${columns} FROM events WHERE seq >= ? ORDER BY seq`).raw();
  const single = db.prepare(`SELECT ${columns} FROM events WHERE seq = ?`).raw();
  for (let seq = firstSeq; seq <= lastSeq;) {
    try {
      for (const found of following.iterate(seq) as Iterable<Found>) {
        yield found;
        seq = found[11] + 1;
      }
      return;
    } catch (error) {
      if (!isDamage(error)) throw error;
      onDamage();
    }
    seq = nextReadable(single, seq, lastSeq);
  }
}

function nextReadable(single: Database.Statement, from: number, lastSeq: number): number {
  for (let seq = from; seq <= lastSeq; seq += 1) {
    try {
      if (single.get(seq) !== undefined) return seq;
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
  }
  return lastSeq + 1;
}

/** Records without a checksum, of format 1, are taken for what they are. */
function isSound([...found]: Found): boolean {
  const [body, crc] = found.splice(9) as [Buffer, number | null];
  return crc === null || crc32(body, crc32(found.map(String).join('\n'))) === crc;
}

/** A page that is not what SQLite wrote, as against a disk that does not answer. */
function isDamage(error: unknown): boolean {
  const code = sqliteCode(error);
  return code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB';
}
