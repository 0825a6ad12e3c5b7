import type { Ahead, CursorStatus } from '../core/journal.ts';
import type { RouteRecord } from '../core/route-record.ts';
import type { StoreBase } from './events.ts';
import type { RouteRecords } from './route-records.ts';
import { hashedColumns } from './schema.ts';
import type { NoteKeeper } from './second-note.ts';

interface CursorParts extends StoreBase {
  readonly routes: RouteRecords;
  readonly note: NoteKeeper;
}

/** Prefix of the checkpoints that say at which seq a sink began. */
const STARTED = 'sink-started/';
/** Tables with a column `sink`, besides `cursors` and `dead_letters`. */
const BY_SINK = ['settled_ahead', 'died_ahead', 'erased_alone', 'dropped_letters'] as const;

/** A feed's cursor: all up to `seq` is settled, and of what follows what `note` says; without a note, what the last one said. */
export type CursorMove = readonly [sink: string, seq: number, note?: string | null];

/** How far each sink is, in the database and in memory. */
export class Cursors {
  readonly #parts: CursorParts;
  readonly #upsert;
  readonly #noteAhead;
  readonly #deleteDied;
  readonly #seqs = new Map<string, number>();
  /** Sinks that were removed: nothing waits for them, and nothing is routed to them. */
  readonly #left: Set<string>;
  /** True once a sink was opened or given up in this run: a command that only looks settles nothing. */
  #delivers = false;
  /** Sinks whose cursor was made by the last `open` and has not moved since. */
  readonly #fresh = new Map<string, 'new' | 'back'>();
  #receiptsUpTo = Infinity;

  constructor(parts: CursorParts) {
    const { db, routes } = parts;
    this.#parts = parts;
    this.#upsert = db.prepare(
      'INSERT INTO cursors (sink, seq) VALUES (?, ?) ON CONFLICT (sink) DO UPDATE SET seq = excluded.seq',
    );
    this.#noteAhead = db.prepare('INSERT OR REPLACE INTO settled_ahead VALUES (?, ?)');
    this.#deleteDied = db.prepare('DELETE FROM died_ahead WHERE sink = ? AND seq <= ?');
    this.#left = new Set(routes.read().left);
    for (const [sink, seq] of db.prepare('SELECT sink, seq FROM cursors').raw().all() as [string, number][])
      this.#seqs.set(sink, seq);
  }

  /** Of all sinks, those that were removed among them. */
  get all(): readonly (readonly [sink: string, seq: number])[] {
    return [...this.#seqs];
  }

  /** Of the sinks that events can wait for. */
  known(): readonly (readonly [sink: string, seq: number])[] {
    return this.all.filter(([sink]) => !this.#left.has(sink));
  }

  /** @returns the seq after which the sink continues; a new sink, or one that was removed, begins at the end */
  open(sink: string): number {
    const end = this.#parts.events.log.lastSeq;
    this.#delivers = true;
    const before = this.#seqs.get(sink);
    if (before !== undefined && !this.#left.has(sink)) {
      this.#fresh.delete(sink);
      return before;
    }
    this.#parts.transactions.run(() => this.place(sink, end));
    this.#fresh.set(sink, before === undefined ? 'new' : 'back');
    this.#parts.note.write();
    return end;
  }

  /** What is settled ahead of a cursor. */
  ahead(sink: string): Ahead {
    const { db } = this.#parts;
    const note = db.prepare('SELECT note FROM settled_ahead WHERE sink = ?').pluck().get(sink);
    const died = db.prepare('SELECT destination, seq FROM died_ahead WHERE sink = ?').raw().all(sink);
    return { note: (note ?? null) as string | null, died: died as [string | null, number][] };
  }

  /** The seq at which each sink began: events up to it are not for the sink. */
  started(): readonly (readonly [sink: string, seq: number])[] {
    const name = `substr(key, ${STARTED.length + 1})`;
    return this.#parts.db
      .prepare(`SELECT ${name}, CAST(value AS INTEGER) FROM checkpoints WHERE key GLOB ?`)
      .raw()
      .all(`${STARTED}*`) as [string, number][];
  }

  /** The cursors as the status shows them. @param now milliseconds since the epoch */
  status(now: number): CursorStatus[] {
    const { log } = this.#parts.events;
    return this.known().map(([sink, seq]) => {
      const backlog = Math.max(0, log.lastSeq - Math.max(seq, log.firstSeq - 1));
      const next = backlog > 0 ? log.records(seq + 1).next().value?.item : undefined;
      const waiting =
        next === undefined
          ? { backlogBytes: 0, backlogAge: 0 }
          : { backlogBytes: log.upto - next.upto, backlogAge: Math.max(0, now - next.receivedAt) };
      return { sink, seq, backlog, ...waiting };
    });
  }

  /** Makes a cursor for a sink that is new or was removed; for others does nothing. Inside a transaction. */
  place(sink: string, end: number): void {
    const { transactions, checkpoints, routes } = this.#parts;
    transactions.afterCommit(() => void this.#fresh.delete(sink));
    const isNew = !this.#seqs.has(sink);
    if (!isNew && !this.#left.has(sink)) return;
    this.#write(sink, end);
    if (!isNew) routes.comeBack(sink);
    else if (checkpoints.load(STARTED + sink) === null) checkpoints.save(STARTED + sink, String(end));
    transactions.afterCommit(() => {
      this.#seqs.set(sink, end);
      this.#left.delete(sink);
    });
  }

  /** The sink is closed. @param forget it could not be opened: a cursor made for this attempt goes */
  release(sink: string, forget: boolean): void {
    const since = this.#fresh.get(sink);
    this.#fresh.delete(sink);
    if (since === undefined || !forget) return;
    if (since === 'back') return void this.leave(sink);
    this.#parts.transactions.run(() => {
      this.#parts.db.prepare('DELETE FROM cursors WHERE sink = ?').run(sink);
      this.#deleteAhead(sink);
      this.#parts.checkpoints.remove(STARTED + sink);
    });
    this.#seqs.delete(sink);
    this.#parts.note.write();
  }

  /** The sink was removed: nothing waits for it any more. */
  leave(sink: string): RouteRecord {
    const record = this.#parts.transactions.run(() => {
      this.#deleteAhead(sink);
      return this.#parts.routes.leave(sink);
    });
    this.#left.add(sink);
    this.#parts.note.write();
    return record;
  }

  /** Renames `from` to `to`, which has no cursor yet: it continues there, and has the dead letters. */
  succeed(from: string, to: string): RouteRecord {
    const seq = this.#seqs.get(from);
    if (seq === undefined || this.#seqs.has(to)) throw new Error(`${to} cannot continue for ${from}`);
    const { db, transactions, routes } = this.#parts;
    const record = transactions.run(() => {
      db.prepare('UPDATE cursors SET sink = ? WHERE sink = ?').run(to, from);
      const hash = `row_hash(${hashedColumns('dead_letters').replace('sink', '?')})`;
      db.prepare(`UPDATE dead_letters SET sink = ?, crc = ${hash} WHERE sink = ?`).run(to, to, from);
      for (const table of BY_SINK)
        db.prepare(`UPDATE OR REPLACE ${table} SET sink = ? WHERE sink = ?`).run(to, from);
      db.prepare('UPDATE checkpoints SET key = ? WHERE key = ?').run(STARTED + to, STARTED + from);
      return routes.succeed(from, to);
    });
    this.#seqs.delete(from);
    this.#seqs.set(to, seq);
    this.#parts.note.write();
    return record;
  }

  move(moves: readonly CursorMove[]): void {
    // A sink that was removed or renamed in the meantime is passed over.
    const known = moves.filter(([sink]) => this.#seqs.has(sink) && !this.#left.has(sink));
    this.#parts.transactions.run(() => {
      for (const [sink, seq, note] of known) {
        this.#write(sink, seq);
        if (note !== undefined) this.#writeAhead(sink, note);
      }
    });
    for (const [sink, seq] of known) {
      if (this.#seqs.get(sink) !== seq) this.#fresh.delete(sink);
      this.#seqs.set(sink, seq);
    }
  }

  /** Newest seq that neither a sink nor the log of receipts needs; 0 before a sink is open, as in a command that only looks. */
  settled(): number {
    if (!this.#delivers) return 0;
    return Math.min(
      this.#parts.events.log.lastSeq,
      this.#receiptsUpTo,
      ...this.known().map(([, seq]) => seq),
    );
  }

  /** The log of receipts has all entries up to this seq and needs the events behind it; Infinity: it needs none. */
  holdForReceipts(seq: number): void {
    this.#receiptsUpTo = seq;
  }

  /** Moves the cursor of a sink that is given up. Inside a transaction. */
  write(sink: string, seq: number): void {
    this.#delivers = true;
    this.#write(sink, seq);
    this.#parts.transactions.afterCommit(() => void this.#seqs.set(sink, seq));
  }

  #write(sink: string, seq: number): void {
    this.#upsert.run(sink, seq);
    this.#deleteDied.run(sink, seq);
  }

  #writeAhead(sink: string, note: string | null): void {
    if (note === null) this.#parts.db.prepare('DELETE FROM settled_ahead WHERE sink = ?').run(sink);
    else this.#noteAhead.run(sink, note);
  }

  #deleteAhead(sink: string): void {
    this.#writeAhead(sink, null);
    this.#deleteDied.run(sink, Number.MAX_SAFE_INTEGER);
  }
}
