import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { errorCode, OWNER_ONLY, readIfThere, syncFolderNow } from '../lib/durable.ts';
import type { StoreBase } from './events.ts';
import { lastKey, type AsideTable } from './schema.ts';
import { segmentsIn } from './segments/segment.ts';
import { isDiskFull } from './sqlite-errors.ts';

export const NOTE = 'journal.note';
/** Key of the checkpoint with the number of the last note. */
export const NOTE_NUMBER = 'note';

/**
 * What the journal's database must not lose, as it was at most a few seconds ago: from it a start repairs a database that is
 * damaged, empty or gone. Cursors that are a little behind send some events twice and lose none.
 */
export interface SecondNote {
  /** Counts the notes. A database with a lower number has lost its newest transactions. */
  readonly number: number;
  /** Milliseconds since the epoch. */
  readonly writtenAt: number;
  readonly cursors: readonly (readonly [sink: string, seq: number])[];
  readonly checkpoints: readonly (readonly [key: string, value: string])[];
  /** Highest key ever given, by table. */
  readonly keys: Readonly<Record<AsideTable, number>>;
  /** Number of rows, by table. */
  readonly rows: Readonly<Record<AsideTable, number>>;
}

/** True when the folder has segments or a second note, so that its database must not be missing. */
export function hasJournalFiles(folder: string): boolean {
  return existsSync(folder) && (segmentsIn(folder).length > 0 || existsSync(join(folder, NOTE)));
}

/** @returns null when there is none; 'damaged' when its checksum is wrong */
export function readSecondNote(folder: string): SecondNote | 'damaged' | null {
  const text = readIfThere(join(folder, NOTE));
  if (text === null) return null;
  const json = text.slice(CRC_DIGITS + 1, -1);
  return text === withChecksum(json) ? (JSON.parse(json) as SecondNote) : 'damaged';
}

/** Replaces the note durably. @returns false when the disk is full or too many files are open: the old one stays */
function writeSecondNote(folder: string, note: SecondNote): boolean {
  const file = join(folder, NOTE);
  try {
    const text = withChecksum(JSON.stringify(note));
    writeFileSync(`${file}.new`, text, { mode: OWNER_ONLY, flush: true });
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
/** Checkpoints that are made again from the events. */
const DERIVED = 'schema*';

/** Writes the second note: at once when a sink is added, removed or renamed and before a segment is removed; otherwise every 5 s. */
export class NoteKeeper {
  readonly #base: StoreBase;
  readonly #folder: string;
  #changes = -1;
  #writtenAt = Number.NEGATIVE_INFINITY;

  constructor(base: StoreBase, folder: string) {
    this.#base = base;
    this.#folder = folder;
  }

  /** Writes the note as the database is; on a full disk it is written once there is room. */
  write(): void {
    try {
      this.#base.transactions.run(() => this.writeAfterCommit());
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
  }

  /** Writes the note when the transaction is committed. A note that is newer than the database would call the database old. */
  writeAfterCommit(): void {
    const { transactions, checkpoints } = this.#base;
    const number = Number(checkpoints.load(NOTE_NUMBER) ?? 0) + 1;
    checkpoints.save(NOTE_NUMBER, String(number));
    transactions.afterCommit(() => {
      if (writeSecondNote(this.#folder, this.#noteOf(number))) this.#changes = this.#totalChanges();
    });
  }

  /** @param now milliseconds since the epoch */
  refresh(now: number): void {
    if (now >= this.#writtenAt && now < this.#writtenAt + REFRESH) return;
    if (this.#totalChanges() === this.#changes) return;
    this.#writtenAt = now;
    this.write();
  }

  #noteOf(number: number): SecondNote {
    const { db } = this.#base;
    const pairs = (sql: string): [string, never][] => db.prepare(sql).raw().all() as [string, never][];
    const count = (table: AsideTable): number =>
      Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
    const [quarantine, deadLetters] = [lastKey(db, 'quarantine'), lastKey(db, 'dead_letters')];
    return {
      number,
      writtenAt: Date.now(),
      cursors: pairs('SELECT sink, seq FROM cursors'),
      checkpoints: pairs(`SELECT key, value FROM checkpoints WHERE key NOT GLOB '${DERIVED}'`),
      keys: { quarantine, dead_letters: deadLetters },
      rows: { quarantine: count('quarantine'), dead_letters: count('dead_letters') },
    };
  }

  #totalChanges(): number {
    return Number(this.#base.db.prepare('SELECT total_changes()').pluck().get());
  }
}

const CRC_DIGITS = 8;

function withChecksum(json: string): string {
  return `${crc32(json).toString(16).padStart(CRC_DIGITS, '0')} ${json}\n`;
}
