import { randomBytes } from 'node:crypto';
import type Database from 'better-sqlite3';
import { hashedId } from '../core/delivery-id.ts';
import type { InvalidReason } from '../core/ingest.ts';
import type { DeadLetter, JournalAccount, Selection, SetAsideSelection } from '../core/journal.ts';
import { canonicalId } from '../core/named-ids.ts';
import { formatTarget } from '../core/route.ts';
import type { Checkpoints } from './checkpoints.ts';
import { ABOUT, insertAside, ROW_COLUMNS, type AsideTable } from './schema.ts';
import { partsAt } from './segments/format.ts';
import { bodyAt, encodeRecords, eventOf, rowAt, type EventRow, type Handled } from './segments/records.ts';

/** A dead letter without its event. */
export type LetterRow = Omit<DeadLetter, 'key' | 'event' | 'bodyBytes'> & { readonly seq: number };

/** Events that wait for a person, and what is said of each; `bodyBytes` where bodies were left out. */
export interface LetterPage<About> {
  /** Of the events, one after the other; a buffer that is all theirs. */
  readonly records: Uint8Array;
  readonly about: readonly (About & { readonly key: number; readonly bodyBytes?: number })[];
}

type AboutLetter = [string, string | null, string, string, number, number, number];

interface Found {
  readonly key: number;
  /** Bytes of the body. */
  readonly size: number;
  readonly about: unknown[];
  readonly row: EventRow;
  readonly body: Buffer;
}

const DROP_KEY = 'dropped-letters/key';

/** Dead letters and quarantine: events that wait for a person, each a whole copy that no retention touches. */
export class SetAside {
  readonly #db: Database.Database;
  readonly #quarantine;
  readonly #add;
  readonly #isThere;
  readonly #died;
  readonly #checkpoints: Checkpoints;
  #dropKey: string | null = null;

  constructor(db: Database.Database, checkpoints: Checkpoints) {
    this.#db = db;
    this.#checkpoints = checkpoints;
    db.function('hashed_id', (id) => hashedId(this.#dropKey ?? '', String(id)));
    db.function('canonical', { deterministic: true }, (id) => (id === null ? null : canonicalId(String(id))));
    this.#quarantine = db.prepare(insertAside('quarantine'));
    this.#add = db.prepare(insertAside('dead_letters'));
    // Behind the cursor that is known as it is.
    this.#died = db.prepare(
      `INSERT INTO died_ahead SELECT @sink, @seq, @destination
       WHERE NOT EXISTS (SELECT 1 FROM cursors WHERE sink = @sink AND seq >= @seq)`,
    );
    this.#isThere = db.prepare(
      'SELECT 1 FROM dead_letters WHERE sink = ? AND seq = ? AND destination IS ? AND id = ?',
    );
  }

  /** @param reasons as JSON @returns its key */
  quarantine(reasons: string, row: EventRow, body: Buffer): number {
    return Number(this.#quarantine.run(reasons, ...row, body).lastInsertRowid);
  }

  /** The letter, and that its delivery is settled: all of it or nothing. */
  add(letter: LetterRow, { records }: Pick<LetterPage<never>, 'records'>): void {
    const bytes = Buffer.from(records.buffer, records.byteOffset, records.length);
    const parts = partsAt(bytes, 0);
    this.#db.transaction(() => this.addRow(letter, rowAt(bytes, 0, parts), bodyAt(bytes, 0, parts)))();
  }

  /** Once for each target. Inside a transaction. */
  addRow(
    { sink, destination, code, reason, attempts, diedAt, seq }: LetterRow,
    row: EventRow,
    body: Buffer,
  ): void {
    if (this.#isThere.get(sink, seq, destination, row[0]) !== undefined) return;
    this.#add.run(sink, destination, code, reason, attempts, diedAt, seq, ...row, body);
    this.#died.run({ sink, seq, destination });
  }

  list(selection: SetAsideSelection, bodies: boolean): LetterPage<LetterRow> {
    return pageOf(this.#select('dead_letters', selection, bodies), bodies, (about) => {
      const [sink, destination, code, reason, attempts, diedAt, seq] = about as AboutLetter;
      return { sink, destination, code, reason, attempts, diedAt, seq };
    });
  }

  listQuarantine(
    selection: SetAsideSelection,
    bodies: boolean,
  ): LetterPage<{ readonly reasons: readonly InvalidReason[] }> {
    return pageOf(this.#select('quarantine', selection, bodies), bodies, ([reasons]) => {
      return { reasons: JSON.parse(String(reasons)) as InvalidReason[] };
    });
  }

  /** The next letters of a selection as they go back into the journal: for the target that refused them and no other. */
  toRetry(selection: Selection): { readonly keys: readonly number[]; readonly events: readonly Handled[] } {
    const page = this.#select('dead_letters', { ...selection, limit: 500 }, true);
    const events = page.map(({ about, row, body }) => {
      const [sink, destination] = about as AboutLetter;
      const { event, handling } = eventOf(row, body);
      return { event, handling: { ...handling, only: [formatTarget({ sink, destination })] } };
    });
    return { keys: page.map(({ key }) => key), events };
  }

  has(table: AsideTable, key: number): boolean {
    return this.#db.prepare(`SELECT 1 FROM ${table} WHERE key = ?`).get(key) !== undefined;
  }

  /** Takes out what was put back. @returns the sinks it is for */
  remove(table: AsideTable, keys: readonly number[]): readonly string[] {
    const among = 'key IN (SELECT value FROM json_each(?))';
    const values = JSON.stringify(keys);
    const sinks =
      table === 'quarantine'
        ? []
        : this.#db.prepare(`SELECT DISTINCT sink FROM dead_letters WHERE ${among}`).pluck().all(values);
    this.#db.prepare(`DELETE FROM ${table} WHERE ${among}`).run(values);
    return sinks as string[];
  }

  /**
   * What a person drops is noted, so that it never counts as lost: by hashes of the ids, for whose they are is not known any more
   * when a user is erased.
   */
  drop(table: AsideTable, selection: Selection): number {
    const { where, values } = conditions(table, selection);
    const dropped = `SELECT ${table === 'dead_letters' ? 'sink' : `''`}, hashed_id(id), received_at FROM ${table} ${where}`;
    return this.#db.transaction(() => {
      this.#haveDropKey();
      this.#db.prepare(`INSERT OR IGNORE INTO dropped_letters ${dropped}`).run(...values);
      return this.#db.prepare(`DELETE FROM ${table} ${where}`).run(...values).changes;
    })();
  }

  #haveDropKey(): void {
    // A key that was made in a transaction that came to nothing is none.
    this.#dropKey = this.#checkpoints.load(DROP_KEY);
    if (this.#dropKey !== null) return;
    this.#dropKey = randomBytes(32).toString('hex');
    this.#checkpoints.save(DROP_KEY, this.#dropKey);
  }

  /** What was dropped of a span of time, milliseconds since the epoch. */
  dropped(since: number, until: number): Pick<JournalAccount, 'dropped' | 'droppedKey'> {
    const dropped = this.#db
      .prepare('SELECT id, sink FROM dropped_letters WHERE received_at >= ? AND received_at < ?')
      .all(since, until) as JournalAccount['dropped'];
    const key = this.#checkpoints.load(DROP_KEY);
    return { dropped, ...(key === null ? {} : { droppedKey: key }) };
  }

  /** A page whose bytes are bounded: bodies of 10 MiB, a hundred at a time, would not fit into memory. */
  #select(table: AsideTable, selection: SetAsideSelection, bodies: boolean): Found[] {
    const { where, values } = conditions(table, selection);
    const about = ABOUT[table];
    const { newestOf, limit = newestOf?.limit ?? 100 } = selection;
    // Without bodies SQLite reads no page of them.
    const rows = this.#db
      .prepare(
        `SELECT key, length(body), ${about.join()}, ${ROW_COLUMNS}, ${bodies ? 'body' : `x''`}
         FROM ${table} ${where} ORDER BY key ${newestOf === undefined ? '' : 'DESC'} LIMIT ?`,
      )
      .raw()
      .iterate(...values, limit) as IterableIterator<[number, number, ...unknown[]]>;
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

function pageOf<About extends object>(
  found: readonly Found[],
  bodies: boolean,
  aboutOf: (about: unknown[]) => About,
): LetterPage<About> {
  return {
    records: encodeRecords(found.map(({ row, body }) => eventOf(row, body))),
    about: found.map(({ key, size, about }) => {
      return { key, ...aboutOf(about), ...(bodies ? {} : { bodyBytes: size }) };
    }),
  };
}

function conditions(
  table: AsideTable,
  selection: SetAsideSelection,
): {
  readonly where: string;
  readonly values: readonly unknown[];
} {
  const { newestOf: meant, keys, after, id, sink } = selection;
  const user = meant?.user === undefined ? undefined : canonicalId(meant.user);
  const parts: readonly (readonly [string, unknown])[] = [
    ['id = ?', meant?.id],
    ['? IN (canonical(user), canonical(client_user))', user],
    ['instr(type, ?) = 1', meant?.type],
    ['received_at >= ?', meant?.since],
    ['received_at < ?', meant?.until],
    ['key > ?', meant?.after],
    ['key < ?', meant?.before],
    ['key IN (SELECT value FROM json_each(?))', keys === undefined ? undefined : JSON.stringify(keys)],
    ['key > ?', after],
    ['id = ?', id],
    ['sink = ?', table === 'dead_letters' ? sink : undefined],
  ];
  const given = parts.filter(([, value]) => value !== undefined);
  const where = given.length === 0 ? '' : `WHERE ${given.map(([text]) => text).join(' AND ')}`;
  return { where, values: given.map(([, value]) => value) };
}
