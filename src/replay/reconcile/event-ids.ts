import { setImmediate } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { folderError } from '../../core/errors.ts';
import { hashedId } from '../../core/hashed-id.ts';
import type { JournalAccount } from '../../core/journal.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { IdCounter, SLOTS, type IdCounts, type Mark, type State, type Statement } from './id-counter.ts';

/** SQLite's: in /var/tmp where TMPDIR names none. */
const TEMPORARY = 'temporary folder (TMPDIR)';
/** Statements that are written together: a call of SQLite costs more than a row. */
const ROWS = 200;
/** Ids between two looks at the signal: some milliseconds. */
const AT_A_TIME = 16 * 1024;

/**
 * What journal and files say of millions of events, compared id by id: each statement is a number beside an id, and SQLite
 * sorts them in a temporary file, which has no name and goes with the process.
 */
export class EventIds {
  readonly #db = new Database('');
  readonly #insert;
  /** Ids and numbers in turn. */
  #rows: (string | number)[] = [];
  readonly #sinks = new Map<string, number>();
  /** Few: what differs from event to event is the id. */
  readonly #statements: Statement[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #dues = new Map<string, Due>();
  /** By the hash of their ids, the sinks of what was dropped and has not been met yet; null for all. */
  readonly #dropped = new Map<string, (string | null)[]>();
  readonly #droppedKey: string | null;

  /** @param dropped what a person dropped; the ids are hashed where there is a key */
  constructor({ dropped, droppedKey }: Pick<JournalAccount, 'dropped' | 'droppedKey'>) {
    this.#db.exec(`PRAGMA journal_mode = OFF; PRAGMA cache_size = -8192;
      CREATE TABLE said (id TEXT NOT NULL, number INTEGER NOT NULL); BEGIN`);
    this.#insert = this.#insertOf(ROWS);
    this.#droppedKey = droppedKey ?? null;
    for (const row of dropped) {
      const sink = row.sink === '' ? null : row.sink;
      if (droppedKey === undefined) this.mark(sink, row.id, 'dropped');
      else getOrMake(this.#dropped, row.id, () => []).push(sink);
    }
  }

  /**
   * What an event is due, to be told with each: made once for many of them.
   * @param isPutBack whether it may be one that is known
   */
  due(isPutBack: boolean, due: readonly (readonly [sink: string, state: State])[]): Due {
    return getOrMake(this.#dues, JSON.stringify([isPutBack, due]), () => ({
      isPutBack,
      due: due.map(([sink, state]) => [this.#sink(sink), state]),
      numbers: [],
    }));
  }

  /**
   * An event the journal holds.
   * @param receivedAt milliseconds since the epoch
   */
  event(id: string, due: Due, receivedAt: number): void {
    const slot = slotAt(receivedAt);
    due.numbers[slot] ??=
      this.#statements.push({ kind: 'event', isPutBack: due.isPutBack, slot, due: due.due }) - 1;
    this.#add(id, due.numbers[slot]);
    this.#meet(id);
  }

  /** @param sink null for every sink */
  mark(sink: string | null, id: string, mark: Mark): void {
    const at = sink === null ? null : this.#sink(sink);
    this.#add(id, this.#number(`${mark}/${at}`, { kind: 'mark', sink: at, mark }));
  }

  /** Takes the ids and times of receipt of the records in a sink's files. */
  finder(sink: string): (id: string, receivedAt: string) => void {
    const at = this.#sink(sink);
    const numbers = Array.from({ length: SLOTS }, (_, slot) =>
      this.#number(`found/${at}/${slot}`, { kind: 'found', sink: at, slot }),
    );
    return (id, receivedAt) => {
      this.#add(id, numbers[slotOf(receivedAt)] ?? 0);
      this.#meet(id);
    };
  }

  /** An event that came in after the journal was read. */
  late(id: string): void {
    this.#add(id, this.#number('late', { kind: 'late' }));
  }

  /** Counts all that was said; nothing can be added afterwards. */
  async count(sinks: readonly string[], signal: AbortSignal): Promise<IdCounts> {
    // Of what is neither in the journal nor in files, only the number counts.
    for (const [hash, from] of this.#dropped) for (const sink of from) this.mark(sink, hash, 'dropped');
    const counter = new IdCounter(
      sinks.map((name) => [name, this.#sink(name)]),
      this.#sinks.size,
      this.#statements,
    );
    try {
      if (this.#rows.length > 0) this.#insertOf(this.#rows.length / 2).run(this.#rows);
      const said = this.#db
        .prepare('SELECT group_concat(number ORDER BY rowid), id FROM said GROUP BY id ORDER BY id')
        .raw();
      let seen = 0;
      for (const [numbers, id] of said.iterate() as Iterable<[numbers: string, id: string]>) {
        counter.count(id, numbers.split(',').map(Number));
        seen += 1;
        if (seen % AT_A_TIME !== 0) continue;
        await setImmediate();
        signal.throwIfAborted();
      }
    } catch (error) {
      signal.throwIfAborted();
      throw folderError(TEMPORARY, error);
    }
    return counter.counts();
  }

  /** The journal or a file has this id: what was dropped of it is told under the id itself. */
  #meet(id: string): void {
    if (this.#droppedKey === null || this.#dropped.size === 0) return;
    const hash = hashedId(this.#droppedKey, id);
    const sinks = this.#dropped.get(hash);
    if (sinks === undefined) return;
    this.#dropped.delete(hash);
    for (const sink of sinks) this.mark(sink, id, 'dropped');
  }

  close(): void {
    this.#db.close();
  }

  #sink(name: string): number {
    return getOrMake(this.#sinks, name, () => this.#sinks.size);
  }

  #number(key: string, statement: Statement): number {
    return getOrMake(this.#numbers, key, () => this.#statements.push(statement) - 1);
  }

  #add(id: string, number: number): void {
    this.#rows.push(id, number);
    if (this.#rows.length < 2 * ROWS) return;
    try {
      this.#insert.run(this.#rows);
    } catch (error) {
      throw folderError(TEMPORARY, error);
    }
    this.#rows = [];
  }

  #insertOf(rows: number): Database.Statement {
    return this.#db.prepare(`INSERT INTO said VALUES ${Array(rows).fill('(?, ?)').join(', ')}`);
  }
}

/** The sinks an event is for, by number, and what became of it there. */
export interface Due {
  readonly isPutBack: boolean;
  readonly due: readonly (readonly [sink: number, state: State])[];
  /** Of its statements, by slot. */
  readonly numbers: number[];
}

/** The slot of a time as records have it. A hash: it is made for each record there is. */
function slotOf(time: string): number {
  return (hashOf(time) >>> 0) % SLOTS;
}

const MINUTE = 60_000;
const ZERO = 0x30;
/** Hash of the text of a minute, `2026-11-21T10:00:`. */
let minute = { at: Number.NaN, hash: 0 };

/** The same of a time in milliseconds. Its text is not made: of all the work that would be a tenth. */
function slotAt(time: number): number {
  const within = time % MINUTE;
  const at = time - within;
  if (minute.at !== at) minute = { at, hash: hashOf(new Date(at).toISOString().slice(0, -'00.000Z'.length)) };
  let { hash } = minute;
  for (const unit of [10_000, 1000]) hash = hashed(hash, ZERO + (Math.floor(within / unit) % 10));
  hash = hashed(hash, 0x2e);
  for (const unit of [100, 10, 1]) hash = hashed(hash, ZERO + (Math.floor(within / unit) % 10));
  return (hashed(hash, 0x5a) >>> 0) % SLOTS;
}

function hashOf(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) hash = hashed(hash, text.charCodeAt(at));
  return hash;
}

function hashed(hash: number, code: number): number {
  return (Math.imul(hash, 31) + code) | 0;
}
