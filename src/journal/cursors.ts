import type Database from 'better-sqlite3';
import type { Ahead } from '../core/journal.ts';
import type { RouteRecord } from '../core/route-record.ts';
import type { Events } from './events.ts';
import type { LedgerReader } from './ledger-reader.ts';
import type { RouteRecords } from './route-records.ts';
import { hashedColumns } from './schema.ts';
import type { NoteKeeper } from './second-note.ts';
import type { Transactions } from './transactions.ts';

interface CursorParts {
  readonly db: Database.Database;
  readonly transactions: Transactions;
  readonly ledger: LedgerReader;
  readonly routes: RouteRecords;
  readonly events: Pick<Events, 'lastSeq'>;
  readonly note: Pick<NoteKeeper, 'write'>;
}

/** What a feed says of its sink: where its cursor stands now, and what is settled ahead of it (left out: nothing new). */
export type Move = readonly [sink: string, seq: number, note?: string | null];

/** How far each sink is, in the database and in memory. */
export class Cursors {
  readonly #parts: CursorParts;
  readonly #ahead: SettledAhead;
  readonly #seqs = new Map<string, number>();
  /** Nothing waits for them, and nothing is routed to them. */
  readonly #left: Set<string>;
  /** Whether a sink was opened or given up in this run: a command that only looks clears nothing away. */
  #delivers = false;
  /** Placed by the last `open` of their sink, and not moved since. */
  readonly #fresh = new Map<string, 'new' | 'back'>();

  #held = Infinity;

  constructor(parts: CursorParts) {
    const { db, routes } = parts;
    this.#parts = parts;
    this.#ahead = new SettledAhead(db);
    this.#left = new Set(routes.read().left);
    for (const row of db.prepare('SELECT sink, seq FROM cursors').all() as { sink: string; seq: number }[]) {
      this.#seqs.set(row.sink, row.seq);
    }
  }

  /** Those of sinks that have left among them. */
  get all(): readonly (readonly [sink: string, seq: number])[] {
    return [...this.#seqs];
  }

  /** Of the sinks that events can wait for. */
  known(): readonly (readonly [sink: string, seq: number])[] {
    return this.all.filter(([sink]) => !this.#left.has(sink));
  }

  open(sink: string): number {
    const end = this.#parts.events.lastSeq;
    this.#delivers = true;
    const before = this.#seqs.get(sink);
    if (before !== undefined && !this.#left.has(sink)) {
      this.#fresh.delete(sink);
      return before;
    }
    // A sink added later starts at the end: history goes to it by replay, on purpose and counted. The very first
    // start has no history, so that it too starts at 0.
    this.#parts.transactions.run(() => this.place(sink, end));
    this.placed(sink, end);
    this.#fresh.set(sink, before === undefined ? 'new' : 'back');
    this.#parts.note.write();
    return end;
  }

  /** What is settled ahead of where a sink stands. */
  ahead(sink: string): Ahead {
    return this.#ahead.read(sink);
  }

  /** Gives a sink that has no place, or has left, one that events can wait behind. Inside a transaction; `placed` follows. */
  place(sink: string, end: number): void {
    const isNew = !this.#seqs.has(sink);
    if (!isNew && !this.#left.has(sink)) return;
    this.#set(sink, end);
    if (isNew) this.#parts.ledger.sinkStarted(sink, end);
    else this.#parts.routes.comeBack(sink);
  }

  placed(sink: string, end: number): void {
    this.#fresh.delete(sink);
    if (this.#seqs.has(sink) && !this.#left.has(sink)) return;
    this.#seqs.set(sink, end);
    this.#left.delete(sink);
  }

  /** @param forget whether a cursor that was placed for nothing goes with its sink: that sink never came to be */
  release(sink: string, forget: boolean): void {
    const since = this.#fresh.get(sink);
    this.#fresh.delete(sink);
    if (since === undefined || !forget) return;
    if (since === 'back') return void this.leave(sink);
    this.#parts.transactions.run(() => {
      this.#parts.db.prepare('DELETE FROM cursors WHERE sink = ?').run(sink);
      this.#ahead.forget(sink);
      this.#parts.ledger.sinkForgotten(sink);
    });
    this.#seqs.delete(sink);
    this.#parts.note.write();
  }

  /** The sink is taken out for good: nothing waits for it. */
  leave(sink: string): RouteRecord {
    const record = this.#parts.transactions.run(() => {
      this.#ahead.forget(sink);
      return this.#parts.routes.leave(sink);
    });
    this.#left.add(sink);
    this.#parts.note.write();
    return record;
  }

  /** `to`, which has no cursor yet, continues where `from` stands, and has its dead letters. */
  succeed(from: string, to: string): RouteRecord {
    const seq = this.#seqs.get(from);
    if (seq === undefined || this.#seqs.has(to)) throw new Error(`${to} cannot continue for ${from}`);
    const { db, transactions, ledger, routes } = this.#parts;
    const record = transactions.run(() => {
      db.prepare('UPDATE cursors SET sink = ? WHERE sink = ?').run(to, from);
      const hash = `row_hash(${hashedColumns('dead_letters').replace('sink', '?')})`;
      db.prepare(`UPDATE dead_letters SET sink = ?, crc = ${hash} WHERE sink = ?`).run(to, to, from);
      db.prepare('UPDATE OR REPLACE erased_alone SET sink = ? WHERE sink = ?').run(to, from);
      this.#ahead.sinkRenamed(from, to);
      ledger.sinkRenamed(from, to);
      return routes.succeed(from, to);
    });
    this.#seqs.delete(from);
    this.#seqs.set(to, seq);
    this.#parts.note.write();
    return record;
  }

  move(moves: readonly Move[]): void {
    // A sink that has left, or goes by another name now, is not brought back by a move that was on its way.
    const known = moves.filter(([sink]) => this.#seqs.has(sink) && !this.#left.has(sink));
    this.#parts.transactions.run(() => {
      for (const [sink, seq, note] of known) {
        this.#set(sink, seq);
        if (note !== undefined) this.#ahead.note(sink, note);
      }
    });
    for (const [sink, seq] of known) {
      if (this.#seqs.get(sink) !== seq) this.#fresh.delete(sink);
      this.#seqs.set(sink, seq);
    }
  }

  /** The newest seq that nothing needs any more; 0 before a sink is open, as in a command that only looks. */
  settled(): number {
    if (!this.#delivers) return 0;
    return Math.min(this.#parts.events.lastSeq, this.#held, ...this.known().map(([, seq]) => seq));
  }

  /** What stands behind this seq is still wanted, though every sink is done with it; Infinity for nothing. */
  hold(seq: number): void {
    this.#held = seq;
  }

  /** Inside a transaction; `note` follows when it is committed. */
  write(sink: string, seq: number): void {
    this.#delivers = true;
    this.#set(sink, seq);
  }

  note(sink: string, seq: number): void {
    this.#seqs.set(sink, seq);
  }

  #set(sink: string, seq: number): void {
    const upsert =
      'INSERT INTO cursors (sink, seq) VALUES (?, ?) ON CONFLICT (sink) DO UPDATE SET seq = excluded.seq';
    this.#parts.db.prepare(upsert).run(sink, seq);
    this.#ahead.passed(sink, seq);
  }
}

/** What sinks have settled ahead of their cursors. All of it inside transactions of who changes the cursors. */
class SettledAhead {
  readonly #db: Database.Database;
  readonly #note;
  readonly #passed;

  constructor(db: Database.Database) {
    this.#db = db;
    this.#note = db.prepare('INSERT OR REPLACE INTO settled_ahead VALUES (?, ?)');
    this.#passed = db.prepare('DELETE FROM died_ahead WHERE sink = ? AND seq <= ?');
  }

  read(sink: string): Ahead {
    const note = this.#db.prepare('SELECT note FROM settled_ahead WHERE sink = ?').pluck().get(sink);
    const died = this.#db.prepare('SELECT destination, seq FROM died_ahead WHERE sink = ?').raw().all(sink);
    return { note: (note ?? null) as string | null, died: died as [string | null, number][] };
  }

  note(sink: string, note: string | null): void {
    if (note === null) this.#db.prepare('DELETE FROM settled_ahead WHERE sink = ?').run(sink);
    else this.#note.run(sink, note);
  }

  /** The cursor is past all up to a seq. */
  passed(sink: string, seq: number): void {
    this.#passed.run(sink, seq);
  }

  forget(sink: string): void {
    this.note(sink, null);
    this.passed(sink, Number.MAX_SAFE_INTEGER);
  }

  sinkRenamed(from: string, to: string): void {
    for (const table of ['settled_ahead', 'died_ahead'])
      this.#db.prepare(`UPDATE OR REPLACE ${table} SET sink = ? WHERE sink = ?`).run(to, from);
  }
}
