import { setImmediate } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { folderError } from '../../core/errors.ts';
import { hashedId } from '../../core/delivery-id.ts';
import type { DroppedEvents } from '../../core/journal.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { IdCounter, SLOTS, type IdCounts, type Mark, type State, type Statement } from './id-counter.ts';

/** SQLite's temporary folder. */
const TEMPORARY = 'temporary folder (TMPDIR)';
/** Rows of one insert: a call of SQLite costs more than a row. */
const ROWS = 200;
/** Ids between two checks of the signal: some milliseconds. */
const AT_A_TIME = 16 * 1024;

/**
 * Compares what the journal and the files say of millions of events, id by id. Each statement is the number of one of few
 * kinds beside an id; SQLite sorts them in a temporary file without a name, which is gone with the process.
 */
export class EventIds {
  readonly #db = new Database('');
  readonly #insert;
  /** Id, number, id, number and so on. */
  #rows: (string | number)[] = [];
  readonly #sinks = new Map<string, number>();
  readonly #statements: Statement[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #dues = new Map<string, Due>();
  /** Sinks of dropped events by the hash of the id, until the id is found; null for all sinks. */
  readonly #dropped = new Map<string, (string | null)[]>();
  readonly #droppedKey: string | null;

  /** @param dropped events that a person dropped */
  constructor(dropped: DroppedEvents | null) {
    this.#db.exec(`PRAGMA journal_mode = OFF; PRAGMA cache_size = -8192;
      CREATE TABLE said (id TEXT NOT NULL, number INTEGER NOT NULL); BEGIN`);
    this.#insert = this.#insertOf(ROWS);
    this.#droppedKey = dropped?.key ?? null;
    for (const { id, sink } of dropped?.events ?? [])
      getOrMake(this.#dropped, id, () => []).push(sink === '' ? null : sink);
  }

  /**
   * The sinks of an event with its state at each; one object for all events alike.
   * @param mayRepeat whether the journal may have the event twice
   */
  due(mayRepeat: boolean, due: readonly (readonly [sink: string, state: State])[]): Due {
    return getOrMake(this.#dues, JSON.stringify([mayRepeat, due]), () => ({
      mayRepeat,
      due: due.map(([sink, state]) => [this.#sink(sink), state]),
      numbers: [],
    }));
  }

  /** Adds an event of the journal. @param receivedAt milliseconds since the epoch */
  event(id: string, due: Due, receivedAt: number): void {
    const slot = slotOf(receivedAt);
    due.numbers[slot] ??=
      this.#statements.push({ kind: 'event', mayRepeat: due.mayRepeat, slot, due: due.due }) - 1;
    this.#add(id, due.numbers[slot]);
    this.#unhash(id);
  }

  /** @param sink null for every sink */
  mark(sink: string | null, id: string, mark: Mark): void {
    const at = sink === null ? null : this.#sink(sink);
    this.#add(id, this.#number(`${mark}/${at}`, { kind: 'mark', sink: at, mark }));
  }

  /** Returns a function that adds a record of a sink's files. */
  finder(sink: string): (id: string, receivedAt: string) => void {
    const at = this.#sink(sink);
    const numbers = Array.from({ length: SLOTS }, (_, slot) =>
      this.#number(`found/${at}/${slot}`, { kind: 'found', sink: at, slot }),
    );
    return (id, receivedAt) => {
      this.#add(id, numbers[slotOfText(receivedAt)] ?? 0);
      this.#unhash(id);
    };
  }

  /** Adds an event that was received after the journal was read. */
  late(id: string): void {
    this.#add(id, this.#number('late', { kind: 'late' }));
  }

  /** Counts all statements; nothing can be added afterwards. */
  async count(sinks: readonly string[], signal: AbortSignal): Promise<IdCounts> {
    // Dropped events that are in neither journal nor files are counted by hash.
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

  /** Replaces the hash of a dropped event by its id. */
  #unhash(id: string): void {
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

/** The sinks of an event, by number, and its state at each. */
export interface Due {
  readonly mayRepeat: boolean;
  readonly due: readonly (readonly [sink: number, state: State])[];
  /** Numbers of its statements, by slot. */
  readonly numbers: number[];
}

const MINUTE = 60_000;

/** The same for the same time of receipt, and seldom for another. */
function slotOf(time: number): number {
  return (((time % MINUTE) + MINUTE) % MINUTE) % SLOTS;
}

/** From the digits of `2026-11-21T10:00:12.345Z`: parsing a date takes twenty times as long. */
function slotOfText(time: string): number {
  if (time.length !== TIME_LENGTH) return slotOf(Date.parse(time)) || 0;
  const digit = (at: number): number => time.charCodeAt(at) - ZERO;
  const seconds = digit(17) * 10 + digit(18);
  const ms = digit(20) * 100 + digit(21) * 10 + digit(22);
  return Math.abs(seconds * 1000 + ms) % SLOTS;
}

const TIME_LENGTH = '2026-11-21T10:00:12.345Z'.length;
const ZERO = 0x30;
