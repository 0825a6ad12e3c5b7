import type { Ahead } from '../core/journal.ts';
import type { RouteRecord } from '../core/route-record.ts';
import type { Base } from './events.ts';
import type { RouteRecords } from './route-records.ts';
import { hashedColumns } from './schema.ts';
import type { NoteKeeper } from './second-note.ts';

interface CursorParts extends Base {
  readonly routes: RouteRecords;
  readonly note: NoteKeeper;
}

/** Begins the keys of checkpoints that say where sinks began. */
const STARTED = 'sink-started/';
/** What tells of sinks by their names, beside their cursors. */
const OF_SINKS = ['settled_ahead', 'died_ahead', 'erased_alone', 'dropped_letters'] as const;

/** What a feed says of its sink: where its cursor stands now, and what is settled ahead of it (left out: nothing new). */
export type Move = readonly [sink: string, seq: number, note?: string | null];

/** How far each sink is, in the database and in memory. */
export class Cursors {
  readonly #parts: CursorParts;
  readonly #noteAhead;
  readonly #passed;
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
    this.#noteAhead = db.prepare('INSERT OR REPLACE INTO settled_ahead VALUES (?, ?)');
    this.#passed = db.prepare('DELETE FROM died_ahead WHERE sink = ? AND seq <= ?');
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
    const { db } = this.#parts;
    const note = db.prepare('SELECT note FROM settled_ahead WHERE sink = ?').pluck().get(sink);
    const died = db.prepare('SELECT destination, seq FROM died_ahead WHERE sink = ?').raw().all(sink);
    return { note: (note ?? null) as string | null, died: died as [string | null, number][] };
  }

  /** Where sinks began: what came before is not for them. */
  started(): readonly (readonly [sink: string, seq: number])[] {
    const name = `substr(key, ${STARTED.length + 1})`;
    return this.#parts.db
      .prepare(`SELECT ${name}, CAST(value AS INTEGER) FROM checkpoints WHERE key GLOB ?`)
      .raw()
      .all(`${STARTED}*`) as [string, number][];
  }

  /** Gives a sink that has no place, or has left, one that events can wait behind. Inside a transaction; `placed` follows. */
  place(sink: string, end: number): void {
    const isNew = !this.#seqs.has(sink);
    if (!isNew && !this.#left.has(sink)) return;
    this.#set(sink, end);
    const { checkpoints, routes } = this.#parts;
    if (!isNew) routes.comeBack(sink);
    else if (checkpoints.load(STARTED + sink) === null) checkpoints.save(STARTED + sink, String(end));
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
      this.#forgetAhead(sink);
      this.#parts.checkpoints.remove(STARTED + sink);
    });
    this.#seqs.delete(sink);
    this.#parts.note.write();
  }

  /** The sink is taken out for good: nothing waits for it. */
  leave(sink: string): RouteRecord {
    const record = this.#parts.transactions.run(() => {
      this.#forgetAhead(sink);
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
    const { db, transactions, routes } = this.#parts;
    const record = transactions.run(() => {
      db.prepare('UPDATE cursors SET sink = ? WHERE sink = ?').run(to, from);
      const hash = `row_hash(${hashedColumns('dead_letters').replace('sink', '?')})`;
      db.prepare(`UPDATE dead_letters SET sink = ?, crc = ${hash} WHERE sink = ?`).run(to, to, from);
      for (const table of OF_SINKS)
        db.prepare(`UPDATE OR REPLACE ${table} SET sink = ? WHERE sink = ?`).run(to, from);
      db.prepare('UPDATE checkpoints SET key = ? WHERE key = ?').run(STARTED + to, STARTED + from);
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
        if (note !== undefined) this.#ahead(sink, note);
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
    this.#passed.run(sink, seq);
  }

  /** What is settled ahead of a cursor; null: nothing. Inside a transaction. */
  #ahead(sink: string, note: string | null): void {
    if (note === null) this.#parts.db.prepare('DELETE FROM settled_ahead WHERE sink = ?').run(sink);
    else this.#noteAhead.run(sink, note);
  }

  #forgetAhead(sink: string): void {
    this.#ahead(sink, null);
    this.#passed.run(sink, Number.MAX_SAFE_INTEGER);
  }
}
