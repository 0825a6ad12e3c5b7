import type Database from 'better-sqlite3';
import type { CountKind, HourCount } from '../core/journal.ts';

const HOUR = 3_600_000;

/** Counts of a commit, as its frame has them. `hour`: since the epoch. */
export type Counted = readonly (readonly [kind: CountKind, hour: number, n: number])[];

/** Counts that are not in the database yet: a few, whatever the number of events. */
export class Tally {
  readonly #hours = new Map<CountKind, Map<number, number>>();

  /** @param at milliseconds since the epoch */
  add(kind: CountKind, at: number): void {
    this.#add(kind, Math.floor(at / HOUR), 1);
  }

  addAll(counted: Counted): void {
    for (const [kind, hour, n] of counted) this.#add(kind, hour, n);
  }

  get counted(): Counted {
    return [...this.#hours].flatMap(([kind, hours]) =>
      [...hours].map(([hour, n]) => [kind, hour, n] as const),
    );
  }

  clear(): void {
    this.#hours.clear();
  }

  #add(kind: CountKind, hour: number, n: number): void {
    let hours = this.#hours.get(kind);
    if (hours === undefined) this.#hours.set(kind, (hours = new Map()));
    hours.set(hour, (hours.get(hour) ?? 0) + n);
  }
}

/**
 * How many events came to what end, by the hour of their receipt: kept beside the events, and longer, so that what has
 * come in can be accounted for when the events themselves are cleared away.
 */
export class HourCounts {
  readonly #upsert;
  readonly #select;
  readonly #first;

  constructor(db: Database.Database) {
    this.#upsert = db.prepare(
      `INSERT INTO hour_counts (hour, kind, n) VALUES (?, ?, ?) ON CONFLICT (hour, kind) DO UPDATE SET n = n + excluded.n`,
    );
    this.#select = db
      .prepare('SELECT kind, hour, n FROM hour_counts WHERE hour >= ? AND hour < ? ORDER BY hour, kind')
      .raw();
    this.#first = db.prepare('SELECT min(hour) FROM hour_counts').pluck();
  }

  /** The first hour that was counted, milliseconds since the epoch; null for none. @param more what is not written yet */
  first(more: Pick<Tally, 'counted'>): number | null {
    const written = this.#first.get() as number | null;
    const hours = [...(written === null ? [] : [written]), ...more.counted.map(([, hour]) => hour)];
    return hours.length === 0 ? null : Math.min(...hours) * HOUR;
  }

  /** Inside a transaction. */
  save({ counted }: Pick<Tally, 'counted'>): void {
    for (const [kind, hour, n] of counted) this.#upsert.run(hour, kind, n);
  }

  /** Whole hours; both in milliseconds since the epoch, `until` not included. @param more what is not written yet */
  read(since: number, until: number, more: Pick<Tally, 'counted'>): HourCount[] {
    const [first, end] = [Math.floor(since / HOUR), Math.ceil(until / HOUR)];
    const all = new Tally();
    all.addAll(this.#select.all(first, end) as unknown as Counted);
    all.addAll(more.counted.filter(([, hour]) => hour >= first && hour < end));
    const counts = all.counted.map(([kind, hour, n]) => ({ hour: hour * HOUR, kind, n }));
    return counts.toSorted((one, other) => one.hour - other.hour || (one.kind < other.kind ? -1 : 1));
  }
}
