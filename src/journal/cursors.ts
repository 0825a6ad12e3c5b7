import type Database from 'better-sqlite3';
import type { LedgerReader } from './ledger-reader.ts';

/** How far each sink is, in the database and in memory. */
export class Cursors {
  readonly #db: Database.Database;
  readonly #transaction: <T>(work: () => T) => T;
  readonly #ledger: LedgerReader;
  readonly #seqs = new Map<string, number>();
  /** Of sinks opened in this run: only they hold events back from being cleared away. */
  readonly #held = new Set<string>();
  /** Placed by the last `open` of their sink, and not moved since. */
  readonly #fresh = new Set<string>();

  constructor(db: Database.Database, transaction: <T>(work: () => T) => T, ledger: LedgerReader) {
    this.#db = db;
    this.#transaction = transaction;
    this.#ledger = ledger;
    for (const row of db.prepare('SELECT sink, seq FROM cursors').all() as { sink: string; seq: number }[]) {
      this.#seqs.set(row.sink, row.seq);
    }
  }

  get all(): readonly (readonly [sink: string, seq: number])[] {
    return [...this.#seqs];
  }

  /** @param end the newest seq: a sink that is new starts there */
  open(sink: string, end: number): number {
    this.#held.add(sink);
    const known = this.#seqs.get(sink);
    if (known !== undefined) {
      this.#fresh.delete(sink);
      return known;
    }
    // A sink added later starts at the end: history goes to it by replay, on purpose and counted. The very first
    // start has no history, so that it too starts at 0.
    this.move([[sink, end]]);
    this.#transaction(() => this.#ledger.sinkStarted(sink, end));
    this.#fresh.add(sink);
    return end;
  }

  /** @param forget whether a cursor that was placed for nothing goes with its sink: that sink never came to be */
  release(sink: string, forget: boolean): void {
    this.#held.delete(sink);
    if (!this.#fresh.delete(sink) || !forget) return;
    this.#transaction(() => {
      this.#db.prepare('DELETE FROM cursors WHERE sink = ?').run(sink);
      this.#ledger.sinkForgotten(sink);
    });
    this.#seqs.delete(sink);
  }

  move(moves: readonly (readonly [sink: string, seq: number])[]): void {
    const upsert = this.#db.prepare(
      'INSERT INTO cursors (sink, seq) VALUES (?, ?) ON CONFLICT (sink) DO UPDATE SET seq = excluded.seq',
    );
    this.#transaction(() => {
      for (const [sink, seq] of moves) upsert.run(sink, seq);
    });
    for (const [sink, seq] of moves) {
      if (this.#seqs.get(sink) !== seq) this.#fresh.delete(sink);
      this.#seqs.set(sink, seq);
    }
  }

  /** The newest seq that every sink of this run is done with; 0 before there is one, as in a command that only looks. */
  settled(end: number): number {
    if (this.#held.size === 0) return 0;
    let least = end;
    for (const sink of this.#held) least = Math.min(least, this.#seqs.get(sink) ?? 0);
    return least;
  }
}
