import type Database from 'better-sqlite3';
import type { CountKind, HourCount } from '../core/journal.ts';

const HOUR = 3_600_000;

/**
 * How many events came to what end, by the hour of their receipt: kept beside the events, and longer, so that what has
 * come in can be accounted for when the events themselves are cleared away. Written inside the transaction of the
 * events they count: one small upsert for each kind a commit has, whatever its size.
 */
export class HourCounts {
  readonly #upsert;
  readonly #select;
  /** Of the running transaction. */
  readonly #added = new Map<CountKind, Map<number, number>>();

  constructor(db: Database.Database) {
    this.#upsert = db.prepare(
      `INSERT INTO hour_counts (hour, kind, n) VALUES (?, ?, ?) ON CONFLICT (hour, kind) DO UPDATE SET n = n + excluded.n`,
    );
    this.#select = db.prepare(
      'SELECT hour, kind, n FROM hour_counts WHERE hour >= ? AND hour < ? ORDER BY hour',
    );
  }

  /** @param at milliseconds since the epoch */
  add(kind: CountKind, at: number): void {
    let hours = this.#added.get(kind);
    if (hours === undefined) this.#added.set(kind, (hours = new Map()));
    const hour = Math.floor(at / HOUR);
    hours.set(hour, (hours.get(hour) ?? 0) + 1);
  }

  /** Writes what was added; call it inside the transaction. */
  save(): void {
    for (const [kind, hours] of this.#added) for (const [hour, n] of hours) this.#upsert.run(hour, kind, n);
    this.#added.clear();
  }

  /** Takes back what a transaction that failed had added. */
  rolledBack(): void {
    this.#added.clear();
  }

  /** Whole hours; both in milliseconds since the epoch, `until` not included. */
  read(since: number, until: number): HourCount[] {
    const rows = this.#select.all(Math.floor(since / HOUR), Math.ceil(until / HOUR)) as {
      hour: number;
      kind: CountKind;
      n: number;
    }[];
    return rows.map(({ hour, kind, n }) => ({ hour: hour * HOUR, kind, n }));
  }
}
