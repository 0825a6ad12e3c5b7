import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { errorCode, OWNER_ONLY, readIfThere, syncFolderNow } from '../lib/durable.ts';
import type { Base } from './events.ts';
import { lastKey, type AsideTable } from './schema.ts';
import { segmentsIn } from './segments/segment.ts';
import { sqliteCode } from './sqlite-errors.ts';

export const NOTE = 'journal.note';
export const NOTE_NUMBER = 'note';

/**
 * What the journal's database must not lose without a word, as it was a few seconds ago at most: with it a start repairs a
 * database that is damaged, emptied or gone. Cursors that are a little behind send some events twice, and lose none.
 */
export interface SecondNote {
  /** Counts the notes; the database has the number of the last one, under `NOTE_NUMBER`. */
  readonly number: number;
  /** Milliseconds since the epoch. */
  readonly writtenAt: number;
  readonly cursors: readonly (readonly [sink: string, seq: number])[];
  readonly checkpoints: readonly (readonly [key: string, value: string])[];
  /** Highest key given so far, by table. */
  readonly keys: Readonly<Record<AsideTable, number>>;
  /** Rows, by table. */
  readonly rows: Readonly<Record<AsideTable, number>>;
}

/** Whether files of a journal are there, beside its database. */
export function isHeld(folder: string): boolean {
  return existsSync(folder) && (segmentsIn(folder).length > 0 || existsSync(join(folder, NOTE)));
}

/** Null when there is none. @returns 'damaged' when it is not what was written */
export function readSecondNote(folder: string): SecondNote | 'damaged' | null {
  const text = readIfThere(join(folder, NOTE));
  if (text === null) return null;
  const json = text.slice(CRC_DIGITS + 1, -1);
  return text === encode(json) ? (JSON.parse(json) as SecondNote) : 'damaged';
}

/**
 * Replaces the note; it is durable when this returns.
 * @returns false when the disk is full, or too many files are open: the one before stays
 */
function writeSecondNote(folder: string, note: SecondNote): boolean {
  const file = join(folder, NOTE);
  try {
    writeFileSync(`${file}.new`, encode(JSON.stringify(note)), { mode: OWNER_ONLY });
    const fd = openSync(`${file}.new`, 'r');
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(`${file}.new`, file);
    syncFolderNow(folder);
    return true;
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE'].includes(errorCode(error))) throw error;
    rmSync(`${file}.new`, { force: true });
    return false;
  }
}

/** Milliseconds between two notes of what changes all the time. */
const REFRESH = 5000;
/** Checkpoints of what is made again from the events. */
const DERIVED = 'schema*';

interface NoteParts extends Base {
  readonly folder: string;
}

/** Keeps the second note: at once where sinks come, go or get another name, and before a segment goes; otherwise now and then. */
export class NoteKeeper {
  readonly #parts: NoteParts;
  #changes = -1;
  #writtenAt = Number.NEGATIVE_INFINITY;

  constructor(parts: NoteParts) {
    this.#parts = parts;
  }

  /** The note is as the database is, but where the disk is full: it is written when there is room again. */
  write(): void {
    try {
      this.#parts.transactions.run(() => this.next())();
    } catch (error) {
      if (sqliteCode(error) !== 'SQLITE_FULL') throw error;
    }
  }

  /** The same inside a transaction. @returns to be called when that is committed */
  next(): () => void {
    const number = Number(this.#parts.checkpoints.load(NOTE_NUMBER) ?? 0) + 1;
    // First: a note that is newer than the database would say that the database is older.
    this.#parts.checkpoints.save(NOTE_NUMBER, String(number));
    return () => {
      if (writeSecondNote(this.#parts.folder, this.#noteOf(number))) this.#changes = this.#total();
    };
  }

  #noteOf(number: number): SecondNote {
    const pairs = (sql: string): [string, never][] =>
      this.#parts.db.prepare(sql).raw().all() as [string, never][];
    const count = (table: AsideTable): number =>
      Number(this.#parts.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
    return {
      number,
      writtenAt: Date.now(),
      cursors: pairs('SELECT sink, seq FROM cursors'),
      checkpoints: pairs(`SELECT key, value FROM checkpoints WHERE key NOT GLOB '${DERIVED}'`),
      keys: byTable((table) => lastKey(this.#parts.db, table)),
      rows: byTable(count),
    };
  }

  /** @param now milliseconds since the epoch */
  refresh(now: number): void {
    if (this.#total() === this.#changes || (now >= this.#writtenAt && now < this.#writtenAt + REFRESH))
      return;
    this.#writtenAt = now;
    this.write();
  }

  #total(): number {
    return Number(this.#parts.db.prepare('SELECT total_changes()').pluck().get());
  }
}

function byTable(get: (table: AsideTable) => number): Readonly<Record<AsideTable, number>> {
  return { quarantine: get('quarantine'), dead_letters: get('dead_letters') };
}

const CRC_DIGITS = 8;

function encode(json: string): string {
  return `${crc32(json).toString(16).padStart(CRC_DIGITS, '0')} ${json}\n`;
}
