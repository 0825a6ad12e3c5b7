import type Database from 'better-sqlite3';
import type { Selection } from '../core/journal.ts';
import { formatTarget } from '../core/route.ts';
import { EVENT_COLUMNS } from './database.ts';
import type { Answers, BuryRequest, LetterRow, Packed } from './protocol.ts';
import { bodyOf, packStored, storedOf, valuesOf, type StoredEvent } from './rows.ts';

type Listed = StoredEvent & {
  key: number;
  body_bytes?: number;
};

type StoredLetter = Listed & {
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

  list(selection: Selection, bodies: boolean): Answers['listDeadLetters'] {
    const found = this.#select('dead_letters', selection, bodies) as StoredLetter[];
    return {
      ...packStored(found),
      ...pageOf(found, bodies),
      letters: found.map(({ sink, destination, code, reason, attempts, died_at, seq }) => {
        return { sink, destination, code, reason, attempts, diedAt: died_at, seq };
      }),
    };
  }

  /** Puts letters back at the end of the journal, for the target that refused them and no other. */
  retry(selection: Selection): { readonly count: number; readonly sinks: ReadonlySet<string> } {
    const sinks = new Set<string>();
    let count = 0;
    let page: StoredLetter[];
    do {
      page = this.#select('dead_letters', { ...selection, limit: 500 }) as StoredLetter[];
      for (const letter of page) {
        const handling = letter.handling === null ? {} : (JSON.parse(letter.handling) as object);
        const target = formatTarget(letter);
        this.#put({ ...letter, handling: JSON.stringify({ ...handling, only: [target] }) });
        this.#db.prepare('DELETE FROM dead_letters WHERE key = ?').run(letter.key);
        sinks.add(letter.sink);
        count += 1;
      }
    } while (page.length > 0);
    return { count, sinks };
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

  listQuarantine(selection: Selection, bodies: boolean): Answers['listQuarantine'] {
    const found = this.#select('quarantine', selection, bodies) as (Listed & { reasons: string })[];
    return {
      ...packStored(found),
      ...pageOf(found, bodies),
      unfit: found.map(({ reasons }) => reasons),
    };
  }

  /** A page whose bytes are bounded: bodies of 10 MiB, a hundred at a time, would not fit into memory. */
  #select(table: 'dead_letters' | 'quarantine', selection: Selection, bodies = true): Listed[] {
    const { where, values } = conditions(table, selection);
    const rows = this.#db
      .prepare(`SELECT ${bodies ? '*' : LISTED[table]} FROM ${table} ${where} ORDER BY key LIMIT ?`)
      .iterate(...values, selection.limit ?? 100) as IterableIterator<
      Listed & Partial<Record<string, string>>
    >;
    const page: Listed[] = [];
    let size = 0;
    for (const row of rows) {
      size += row.body.length + row.headers.length + (row['reasons'] ?? row['reason'] ?? '').length;
      if (page.length > 0 && size > PAGE_BYTES) break;
      page.push(row);
    }
    return page;
  }
}

/** Of events and what is said of them, in one answer; the first is there whatever its size. */
const PAGE_BYTES = 8 * 2 ** 20;
/** Without bodies: SQLite reads no page of them. */
const HEADS = `${EVENT_COLUMNS.slice(0, -', body'.length)}, x'' AS body, length(body) AS body_bytes`;
const LISTED = {
  quarantine: `key, reasons, ${HEADS}`,
  dead_letters: `key, sink, destination, code, reason, attempts, died_at, seq, ${HEADS}`,
} as const;

function pageOf(
  found: readonly Listed[],
  bodies: boolean,
): Pick<Answers['listQuarantine'], 'keys' | 'bodyBytes'> {
  return {
    keys: found.map(({ key }) => key),
    bodyBytes: bodies ? null : found.map(({ body_bytes: bytes }) => bytes ?? 0),
  };
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
