import type Database from 'better-sqlite3';
import type { CountKind, HourCount } from '../core/journal.ts';
import { getOrMake } from '../lib/get-or-make.ts';

const HOUR = 3_600_000;

/** Counts of a commit as its frame has them. `hour`: whole hours since the epoch. */
export type FrameCounts = readonly (readonly [kind: CountKind, hour: number, n: number])[];

/** Counts by hour of receipt, in memory: a few numbers, however many events. */
export class HourTally {
  readonly #hours = new Map<CountKind, Map<number, number>>();

  /** @param at milliseconds since the epoch */
  add(kind: CountKind, at: number): void {
    this.#add(kind, Math.floor(at / HOUR), 1);
  }

  addAll(counts: FrameCounts): void {
    for (const [kind, hour, n] of counts) this.#add(kind, hour, n);
  }

  get counts(): FrameCounts {
    return [...this.#hours].flatMap(([kind, hours]) =>
      [...hours].map(([hour, n]) => [kind, hour, n] as const),
    );
  }

  /** By hour and kind. */
  get hours(): HourCount[] {
    const counts = this.counts.map(([kind, hour, n]) => ({ hour: hour * HOUR, kind, n }));
    return counts.toSorted((one, other) => one.hour - other.hour || (one.kind < other.kind ? -1 : 1));
  }

  clear(): void {
    this.#hours.clear();
  }

  #add(kind: CountKind, hour: number, n: number): void {
    const hours = getOrMake(this.#hours, kind, () => new Map<number, number>());
    hours.set(hour, (hours.get(hour) ?? 0) + n);
  }
}

/** How many events came to which end, by hour of receipt. Kept longer than the events, to account for those that were cleared. */
export class HourCounts {
  readonly #upsert;
  readonly #select;
  readonly #first;

  constructor(db: Database.Database) {
    this.#upsert = db.prepare(
      `INSERT INTO hour_counts (hour, kind, n) VALUES (?, ?, ?) ON CONFLICT (hour, kind) DO UPDATE SET n = n + excluded.n`,
    );
    this.#select = db.prepare('SELECT kind, hour, n FROM hour_counts WHERE hour >= ? AND hour < ?').raw();
    this.#first = db.prepare('SELECT min(hour) FROM hour_counts').pluck();
  }

  /** The first hour ever counted, milliseconds since the epoch; null for none. @param unsaved counts not in the table yet */
  first(unsaved: HourTally): number | null {
    const saved = this.#first.get() as number | null;
    const hours = [...(saved === null ? [] : [saved]), ...unsaved.counts.map(([, hour]) => hour)];
    return hours.length === 0 ? null : Math.min(...hours) * HOUR;
  }

  /** Adds to the table. Inside a transaction. */
  save({ counts }: HourTally): void {
    for (const [kind, hour, n] of counts) this.#upsert.run(hour, kind, n);
  }

  /** Counts of whole hours, by hour and kind. @param since and `until` (not included): milliseconds since the epoch */
  read(since: number, until: number, unsaved: HourTally): HourCount[] {
    const [first, end] = [Math.floor(since / HOUR), Math.ceil(until / HOUR)];
    const all = new HourTally();
    all.addAll(this.#select.all(first, end) as unknown as FrameCounts);
    all.addAll(unsaved.counts.filter(([, hour]) => hour >= first && hour < end));
    return all.hours;
  }
}
