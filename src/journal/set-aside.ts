import type Database from 'better-sqlite3';
import type { InvalidReason } from '../core/ingest.ts';
import type { DeadLetterBatch, DeadLetter, Selection } from '../core/journal.ts';
import { formatTarget } from '../core/route.ts';
import { EVENT_COLUMNS, ROW_COLUMNS } from './database.ts';
import { bodiesOf, packRows, type EventRow, type Packed } from './rows.ts';

/** A dead letter without its event. */
export type LetterRow = Omit<DeadLetter, 'key' | 'event' | 'bodyBytes'> & { readonly seq: number };

/** Events that wait for a person, and what is said of each; `bodyBytes` where bodies were left out. */
export interface LetterPage<About> extends Packed {
  readonly about: readonly (About & { readonly key: number; readonly bodyBytes?: number })[];
}

type Table = keyof typeof ABOUT;
/** Columns in front of those of the event, in their order. */
const ABOUT = {
  quarantine: ['reasons'],
  dead_letters: ['sink', 'destination', 'code', 'reason', 'attempts', 'died_at', 'seq'],
} as const;

type AboutLetter = [string, string | null, string, string, number, number, number];

interface Found {
  readonly key: number;
  /** Bytes of the body. */
  readonly size: number;
  readonly about: unknown[];
  readonly row: EventRow;
  readonly body: Buffer;
}

/** Dead letters and quarantine: events that wait for a person, each a whole copy that no retention touches. */
export class SetAside {
  readonly #db: Database.Database;
  readonly #put: (row: EventRow, body: Buffer) => number;
  readonly #quarantine;
  readonly #add;

  /** @param put appends an event to the journal proper, inside the running transaction. */
  constructor(db: Database.Database, put: (row: EventRow, body: Buffer) => number) {
    this.#db = db;
    this.#put = put;
    this.#quarantine = db.prepare(insertInto('quarantine'));
    this.#add = db.prepare(insertInto('dead_letters'));
  }

  /** @param reasons as JSON */
  quarantine(reasons: string, row: EventRow, body: Buffer): void {
    this.#quarantine.run(reasons, ...row, body);
  }

  add(letter: LetterRow, event: Packed): void {
    const { sink, destination, code, reason, attempts, diedAt, seq } = letter;
    for (const [index, body] of bodiesOf(event).entries()) {
      const row = event.rows[index] as EventRow;
      this.#add.run(sink, destination, code, reason, attempts, diedAt, seq, ...row, body);
    }
  }

  /** A dead letter of an event that the journal holds. */
  addCopy(sink: string, letter: DeadLetterBatch['letters'][number]): void {
    const { seq, destination, code, reason, diedAt } = letter;
    this.#db
      .prepare(
        `INSERT INTO dead_letters (${ABOUT.dead_letters.join()}, ${EVENT_COLUMNS})
         SELECT ?, ?, ?, ?, 0, ?, seq, ${EVENT_COLUMNS} FROM events WHERE seq = ?`,
      )
      .run(sink, destination, code, reason, diedAt, seq);
  }

  list(selection: Selection, bodies: boolean): LetterPage<LetterRow> {
    return pageOf(this.#select('dead_letters', selection, bodies), bodies, (about) => {
      const [sink, destination, code, reason, attempts, diedAt, seq] = about as AboutLetter;
      return { sink, destination, code, reason, attempts, diedAt, seq };
    });
  }

  listQuarantine(
    selection: Selection,
    bodies: boolean,
  ): LetterPage<{ readonly reasons: readonly InvalidReason[] }> {
    return pageOf(this.#select('quarantine', selection, bodies), bodies, ([reasons]) => {
      return { reasons: JSON.parse(String(reasons)) as InvalidReason[] };
    });
  }

  /** Puts letters back at the end of the journal, for the target that refused them and no other. */
  retry(selection: Selection): { readonly count: number; readonly sinks: ReadonlySet<string> } {
    const sinks = new Set<string>();
    let count = 0;
    let page: Found[];
    do {
      page = this.#select('dead_letters', { ...selection, limit: 500 }, true);
      for (const { key, about, row, body } of page) {
        const [sink, destination] = about as AboutLetter;
        const handling = JSON.parse(row[8] ?? '{}') as object;
        const only = [formatTarget({ sink, destination })];
        this.#put(row.with(8, JSON.stringify({ ...handling, only })) as unknown as EventRow, body);
        this.#db.prepare('DELETE FROM dead_letters WHERE key = ?').run(key);
        sinks.add(sink);
        count += 1;
      }
    } while (page.length > 0);
    return { count, sinks };
  }

  drop(table: Table, selection: Selection): number {
    const { where, values } = conditions(table, selection);
    const sink = table === 'dead_letters' ? 'sink' : `''`;
    return this.#db.transaction(() => {
      // Their ids stay, so that what was dropped never counts as lost.
      this.#db
        .prepare(
          `INSERT OR IGNORE INTO dropped_letters SELECT ${sink}, id, received_at FROM ${table} ${where}`,
        )
        .run(...values);
      return this.#db.prepare(`DELETE FROM ${table} ${where}`).run(...values).changes;
    })();
  }

  /** A page whose bytes are bounded: bodies of 10 MiB, a hundred at a time, would not fit into memory. */
  #select(table: Table, selection: Selection, bodies: boolean): Found[] {
    const { where, values } = conditions(table, selection);
    const about = ABOUT[table];
    // Without bodies SQLite reads no page of them.
    const rows = this.#db
      .prepare(
        `SELECT key, length(body), ${about.join()}, ${ROW_COLUMNS}, ${bodies ? 'body' : `x''`}
         FROM ${table} ${where} ORDER BY key LIMIT ?`,
      )
      .raw()
      .iterate(...values, selection.limit ?? 100) as IterableIterator<[number, number, ...unknown[]]>;
    const page: Found[] = [];
    let bytes = 0;
    for (const [key, size, ...rest] of rows) {
      const body = rest.pop() as Buffer;
      const found = {
        key,
        size,
        about: rest.splice(0, about.length),
        row: rest as unknown as EventRow,
        body,
      };
      bytes += body.length + found.row[7].length + found.about.join('').length;
      if (page.length > 0 && bytes > PAGE_BYTES) break;
      page.push(found);
    }
    return page;
  }
}

/** Of events and what is said of them, in one answer; the first is there whatever its size. */
const PAGE_BYTES = 8 * 2 ** 20;

function insertInto(table: Table): string {
  const columns = `${ABOUT[table].join()}, ${EVENT_COLUMNS}`;
  return `INSERT INTO ${table} (${columns}) VALUES (${columns.split(',').fill('?').join()})`;
}

function pageOf<About extends object>(
  found: readonly Found[],
  bodies: boolean,
  aboutOf: (about: unknown[]) => About,
): LetterPage<About> {
  return {
    ...packRows(
      found.map(({ row }) => row),
      found.map(({ body }) => body),
    ),
    about: found.map(({ key, size, about }) => {
      return { key, ...aboutOf(about), ...(bodies ? {} : { bodyBytes: size }) };
    }),
  };
}

function conditions(table: Table, selection: Selection): { where: string; values: unknown[] } {
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
