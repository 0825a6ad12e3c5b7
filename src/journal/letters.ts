import type Database from 'better-sqlite3';
import type { Selection } from '../core/journal.ts';
import { formatTarget } from '../core/route.ts';
import { EVENT_COLUMNS } from './database.ts';
import type { Answers, BuryRequest, LetterRow, Packed } from './protocol.ts';
import { bodyOf, packStored, storedOf, valuesOf, type StoredEvent } from './rows.ts';

type StoredLetter = StoredEvent & {
  key: number;
  sink: string;
  destination: string | null;
  code: string;
  reason: string;
  attempts: number;
  died_at: number;
  seq: number;
};

/** Dead letters and quarantine: events that wait for a person, each a whole copy that no retention touches. */
export class Letters {
  readonly #db: Database.Database;
  readonly #put: (event: StoredEvent) => number;

  /** @param put appends an event to the journal proper, inside the running transaction. */
  constructor(db: Database.Database, put: (event: StoredEvent) => number) {
    this.#db = db;
    this.#put = put;
  }

  add(letter: LetterRow, event: Packed): void {
    const row = event.rows[0];
    if (row === undefined) return;
    const { sink, destination, code, reason, attempts, diedAt, seq } = letter;
    this.#db
      .prepare(
        `INSERT INTO dead_letters (sink, destination, code, reason, attempts, died_at, seq, ${EVENT_COLUMNS})
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(
        sink,
        destination,
        code,
        reason,
        attempts,
        diedAt,
        seq,
        ...valuesOf(storedOf(row, bodyOf(event, 0, row[9]))),
      );
  }

  /** A dead letter of an event that the journal holds. */
  addCopy(sink: string, letter: BuryRequest['letters'][number]): void {
    const { seq, destination, code, reason, diedAt } = letter;
    this.#db
      .prepare(
        `INSERT INTO dead_letters (sink, destination, code, reason, attempts, died_at, seq, ${EVENT_COLUMNS})
         SELECT ?, ?, ?, ?, 0, ?, seq, ${EVENT_COLUMNS} FROM events WHERE seq = ?`,
      )
      .run(sink, destination, code, reason, diedAt, seq);
  }

  list(selection: Selection): Answers['listDeadLetters'] {
    const found = this.#select('dead_letters', selection) as StoredLetter[];
    return {
      ...packStored(found),
      keys: found.map(({ key }) => key),
      letters: found.map(({ sink, destination, code, reason, attempts, died_at, seq }) => {
        return { sink, destination, code, reason, attempts, diedAt: died_at, seq };
      }),
    };
  }

  /** Puts letters back at the end of the journal, for the target that refused them and no other. */
  retry(selection: Selection): number {
    let count = 0;
    let page: StoredLetter[];
    do {
      page = this.#select('dead_letters', { ...selection, limit: 500 }) as StoredLetter[];
      for (const letter of page) {
        const handling = letter.handling === null ? {} : (JSON.parse(letter.handling) as object);
        const target = formatTarget(letter);
        this.#put({ ...letter, handling: JSON.stringify({ ...handling, only: [target] }) });
        this.#db.prepare('DELETE FROM dead_letters WHERE key = ?').run(letter.key);
        count += 1;
      }
    } while (page.length > 0);
    return count;
  }

  drop(table: 'dead_letters' | 'quarantine', selection: Selection): number {
    const { where, values } = conditions(table, selection);
    const sink = table === 'dead_letters' ? 'sink' : `''`;
    return this.#db.transaction(() => {
      // Their ids stay, so that what was let go of is never taken for lost.
      this.#db
        .prepare(
          `INSERT OR IGNORE INTO dropped_letters SELECT ${sink}, id, received_at FROM ${table} ${where}`,
        )
        .run(...values);
      return this.#db.prepare(`DELETE FROM ${table} ${where}`).run(...values).changes;
    })();
  }

  listQuarantine(selection: Selection): Answers['listQuarantine'] {
    const found = this.#select('quarantine', selection) as (StoredEvent & { key: number; reasons: string })[];
    return {
      ...packStored(found),
      keys: found.map(({ key }) => key),
      unfit: found.map(({ reasons }) => reasons),
    };
  }

  #select(table: 'dead_letters' | 'quarantine', selection: Selection): unknown[] {
    const { where, values } = conditions(table, selection);
    return this.#db
      .prepare(`SELECT * FROM ${table} ${where} ORDER BY key LIMIT ?`)
      .all(...values, selection.limit ?? 100);
  }
}

function conditions(
  table: 'dead_letters' | 'quarantine',
  selection: Selection,
): { where: string; values: unknown[] } {
  const parts: string[] = [];
  const values: unknown[] = [];
  if (selection.keys !== undefined) {
    parts.push('key IN (SELECT value FROM json_each(?))');
    values.push(JSON.stringify(selection.keys));
  }
  if (selection.after !== undefined) {
    parts.push('key > ?');
    values.push(selection.after);
  }
  if (selection.sink !== undefined && table === 'dead_letters') {
    parts.push('sink = ?');
    values.push(selection.sink);
  }
  return { where: parts.length === 0 ? '' : `WHERE ${parts.join(' AND ')}`, values };
}
