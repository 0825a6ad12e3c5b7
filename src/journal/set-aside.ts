import { randomBytes } from 'node:crypto';
import type Database from 'better-sqlite3';
import { hashedId } from '../core/delivery-id.ts';
import { MillraceError } from '../core/errors.ts';
import type { InvalidReason } from '../core/ingest.ts';
import type { DeadLetter, DroppedEvents, Selection, SetAsideSelection } from '../core/journal.ts';
import { canonicalId } from '../core/named-ids.ts';
import { formatTarget } from '../core/route.ts';
import type { Checkpoints } from './checkpoints.ts';
import { ABOUT, insertAside, ROW_COLUMNS, type AsideTable } from './schema.ts';
import { encodeRecords, eventOf, type EventRow, type Handled } from './segments/records.ts';

/** A dead letter without its event. */
export type DeadLetterAbout = Omit<DeadLetter, 'key' | 'event' | 'bodyBytes'> & { readonly seq: number };

/** Events that were set aside, and for each what the table says besides; `bodyBytes` where bodies were left out. */
export interface SetAsidePage<About> {
  /** In a buffer of their own, which is transferred. */
  readonly records: Uint8Array;
  readonly about: readonly (About & { readonly key: number; readonly bodyBytes?: number })[];
}

type DeadLetterColumns = [string, string | null, string, string, number, number, number];

interface FoundRow {
  readonly key: number;
  /** Bytes of the body. */
  readonly size: number;
  readonly about: unknown[];
  readonly row: EventRow;
  readonly body: Buffer;
}

/** Key of the checkpoint with the secret of the hashes in `dropped_letters`. */
export const DROP_KEY = 'dropped-letters/key';
/** Dead letters retried in one frame. */
const RETRIED_AT_ONCE = 500;

/** Dead letters and quarantine: whole copies of events, which no retention removes. */
export class SetAside {
  readonly #db: Database.Database;
  readonly #quarantine;
  readonly #add;
  readonly #isThere;
  readonly #addAhead;
  readonly #checkpoints: Checkpoints;
  #dropKey: string | null = null;

  constructor(db: Database.Database, checkpoints: Checkpoints) {
    this.#db = db;
    this.#checkpoints = checkpoints;
    db.function('hashed_id', (id) => hashedId(this.#dropKey ?? '', String(id)));
    db.function('canonical', { deterministic: true }, (id) => (id === null ? null : canonicalId(String(id))));
    this.#quarantine = db.prepare(insertAside('quarantine'));
    this.#add = db.prepare(insertAside('dead_letters'));
    this.#addAhead = db.prepare(
      `INSERT INTO died_ahead SELECT @sink, @seq, @destination
       WHERE NOT EXISTS (SELECT 1 FROM cursors WHERE sink = @sink AND seq >= @seq)`,
    );
    this.#isThere = db.prepare(
      'SELECT 1 FROM dead_letters WHERE sink = ? AND seq = ? AND destination IS ? AND id = ?',
    );
  }

  /** @param reasons JSON @returns its key */
  quarantine(reasons: string, row: EventRow, body: Buffer): number {
    return Number(this.#quarantine.run(reasons, ...row, body).lastInsertRowid);
  }

  /** Adds a dead letter, once for each target, and that its delivery is settled. Inside a transaction. */
  addDeadLetter(
    { sink, destination, code, reason, attempts, diedAt, seq }: DeadLetterAbout,
    row: EventRow,
    body: Buffer,
  ): void {
    if (this.#isThere.get(sink, seq, destination, row[0]) !== undefined) return;
    this.#add.run(sink, destination, code, reason, attempts, diedAt, seq, ...row, body);
    this.#addAhead.run({ sink, seq, destination });
  }

  list(selection: SetAsideSelection, bodies: boolean): SetAsidePage<DeadLetterAbout> {
    return pageOf(this.#select('dead_letters', selection, bodies), bodies, (about) => {
      const [sink, destination, code, reason, attempts, diedAt, seq] = about as DeadLetterColumns;
      return { sink, destination, code, reason, attempts, diedAt, seq };
    });
  }

  listQuarantine(
    selection: SetAsideSelection,
    bodies: boolean,
  ): SetAsidePage<{ readonly reasons: readonly InvalidReason[] }> {
    return pageOf(this.#select('quarantine', selection, bodies), bodies, ([reasons]) => ({
      reasons: JSON.parse(String(reasons)) as InvalidReason[],
    }));
  }

  /** The next dead letters of a selection, each for the target that refused it. */
  toRetry(selection: Selection): { readonly keys: readonly number[]; readonly events: readonly Handled[] } {
    const page = this.#select('dead_letters', { ...selection, limit: RETRIED_AT_ONCE }, true);
    const events = page.map(({ about, row, body }) => {
      const [sink, destination] = about as DeadLetterColumns;
      const { event, handling } = eventOf(row, body);
      return { event, handling: { ...handling, only: [formatTarget({ sink, destination })] } };
    });
    return { keys: page.map(({ key }) => key), events };
  }

  isQuarantined(key: number): boolean {
    return this.#db.prepare('SELECT 1 FROM quarantine WHERE key = ?').get(key) !== undefined;
  }

  /** Deletes rows whose events were appended again. @returns the sinks they are for */
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
   * Deletes rows, and keeps a keyed hash of each id, so that a dropped event never counts as lost. Plain ids would outlive an
   * erasure, which could not tell whose they are.
   * @returns how many
   */
  drop(table: AsideTable, selection: Selection): number {
    const { where, values } = conditions(table, selection);
    const dropped = `SELECT ${table === 'dead_letters' ? 'sink' : `''`}, hashed_id(id), received_at FROM ${table} ${where}`;
    return this.#db.transaction(() => {
      this.#loadDropKey();
      this.#db.prepare(`INSERT OR IGNORE INTO dropped_letters ${dropped}`).run(...values);
      return this.#db.prepare(`DELETE FROM ${table} ${where}`).run(...values).changes;
    })();
  }

  #loadDropKey(): void {
    // Read each time: the transaction that made a key may have been rolled back.
    this.#dropKey = this.#checkpoints.load(DROP_KEY);
    if (this.#dropKey !== null) return;
    this.#dropKey = randomBytes(32).toString('hex');
    this.#checkpoints.save(DROP_KEY, this.#dropKey);
  }

  /** Events received in a span of time, milliseconds since the epoch, that were dropped. */
  dropped(since: number, until: number): DroppedEvents | null {
    const events = this.#db
      .prepare('SELECT id, sink FROM dropped_letters WHERE received_at >= ? AND received_at < ?')
      .all(since, until) as DroppedEvents['events'];
    const key = this.#checkpoints.load(DROP_KEY);
    if (key !== null) return { key, events };
    if (events.length > 0) throw new MillraceError('journal_unreadable', `${DROP_KEY} is not in the journal`);
    return null;
  }

  /** A page of bounded size: a hundred bodies of 10 MiB would be too much memory. */
  #select(table: AsideTable, selection: SetAsideSelection, bodies: boolean): FoundRow[] {
    const { where, values } = conditions(table, selection);
    const about = ABOUT[table];
    const { newestOf, limit = newestOf?.limit ?? 100 } = selection;
    // Without bodies SQLite reads none of their pages.
    const rows = this.#db
      .prepare(
        `SELECT key, length(body), ${about.join()}, ${ROW_COLUMNS}, ${bodies ? 'body' : `x''`}
         FROM ${table} ${where} ORDER BY key ${newestOf === undefined ? '' : 'DESC'} LIMIT ?`,
      )
      .raw()
      .iterate(...values, limit) as IterableIterator<[number, number, ...unknown[]]>;
    const page: FoundRow[] = [];
    let bytes = 0;
    for (const [key, size, ...rest] of rows) {
      const body = rest.pop() as Buffer;
      const besides = rest.splice(0, about.length);
      const row = rest as unknown as EventRow;
      bytes += body.length + row[7].length + besides.join('').length;
      if (page.length > 0 && bytes > PAGE_BYTES) break;
      page.push({ key, size, about: besides, row, body });
    }
    return page;
  }
}

/** Of a page; its first event is always there. */
const PAGE_BYTES = 8 * 2 ** 20;

function pageOf<About extends object>(
  found: readonly FoundRow[],
  bodies: boolean,
  aboutOf: (about: unknown[]) => About,
): SetAsidePage<About> {
  return {
    records: encodeRecords(found.map(({ row, body }) => eventOf(row, body))),
    about: found.map(({ key, size, about }) => ({
      key,
      ...aboutOf(about),
      ...(bodies ? {} : { bodyBytes: size }),
    })),
  };
}

/** @returns the WHERE clause of a selection, and its values */
function conditions(
  table: AsideTable,
  selection: SetAsideSelection,
): { readonly where: string; readonly values: readonly unknown[] } {
  const { newestOf: query, keys, after, id, sink } = selection;
  const user = query?.user === undefined ? undefined : canonicalId(query.user);
  const parts: readonly (readonly [string, unknown])[] = [
    ['id = ?', query?.id],
    ['? IN (canonical(user), canonical(client_user))', user],
    ['instr(type, ?) = 1', query?.type],
    ['received_at >= ?', query?.since],
    ['received_at < ?', query?.until],
    ['key > ?', query?.after],
    ['key < ?', query?.before],
    ['key IN (SELECT value FROM json_each(?))', keys === undefined ? undefined : JSON.stringify(keys)],
    ['key > ?', after],
    ['id = ?', id],
    ['sink = ?', table === 'dead_letters' ? sink : undefined],
  ];
  const given = parts.filter(([, value]) => value !== undefined);
  const where = given.length === 0 ? '' : `WHERE ${given.map(([text]) => text).join(' AND ')}`;
  return { where, values: given.map(([, value]) => value) };
}
