import { crc32 } from 'node:zlib';
import type Database from 'better-sqlite3';

/**
 * Columns that the sums of a table cover; `crc` covers the event in its row. Tables of ids have no sums: a damaged id costs a
 * duplicate, and rows are written by the ten thousand.
 */
export const SUMMED = {
  damaged: 'what, seq, n, detail, found_at, waiting',
  cursors: 'sink, seq',
  settled_ahead: 'sink, note',
  died_ahead: 'sink, seq, destination',
  checkpoints: 'key, value',
  quarantine: 'key, crc',
  dead_letters: 'key, crc',
  quarantine_entered: 'key',
  generations: 'generation, last_at, ids, filter',
  hour_counts: 'hour, kind, n',
  dropped_letters: 'sink, id, received_at',
  erased_alone: 'sink, seq, received_at',
} as const;

export type Summed = keyof typeof SUMMED;
const NAMES = Object.keys(SUMMED) as readonly Summed[];

/** Defines the SQL function `row_hash(…)`: 32 bits of any values and their types. */
export function defineRowHash(db: Database.Database): void {
  db.function('row_hash', { varargs: true, deterministic: true }, (...values: unknown[]) => hashOf(values));
}

function hashOf(values: readonly unknown[]): number {
  let hash = 0;
  for (const value of values) {
    const bytes = Buffer.isBuffer(value) ? value : String(value);
    hash = crc32(bytes, crc32(`${typeof value} ${bytes.length}\n`, hash));
  }
  return hash;
}

/**
 * Triggers that keep `sums`, the number of rows of each table and the sum of their hashes. They belong to the connection, so that
 * what another program writes does not count as ours.
 */
export const SUM_TRIGGERS = NAMES.map((name) => {
  const hash = (row: 'new' | 'old'): string =>
    `row_hash(${SUMMED[name].replaceAll(/\w+/g, (column) => `${row}.${column}`)})`;
  const trigger = (event: string, change: string): string =>
    `CREATE TEMP TRIGGER ${name}_${event.toLowerCase()} AFTER ${event} ON main.${name} BEGIN UPDATE sums SET ${change} WHERE name = '${name}'; END;`;
  return [
    trigger('INSERT', `n = n + 1, total = total + ${hash('new')}`),
    trigger('DELETE', `n = n - 1, total = total - ${hash('old')}`),
    trigger('UPDATE', `total = total - ${hash('old')} + ${hash('new')}`),
  ].join('\n');
}).join('\n');

/** A table whose rows differ from those that were written. */
export interface WrongSum {
  /** Expected number of rows; null when the sum is damaged too. */
  readonly rows: number | null;
  readonly found: number;
}

/** Tables that differ from their sums. @throws SQLite's error when a table cannot be read */
export function wrongSums(db: Database.Database): ReadonlyMap<Summed, WrongSum> {
  const noted = db.prepare('SELECT n, total FROM sums WHERE name = ?').raw();
  const wrong = new Map<Summed, WrongSum>();
  for (const name of NAMES) {
    const [found, total] = db.prepare(totals(name)).raw().get() as [number, number];
    const [rows, sum] = (noted.get(name) ?? [null, null]) as [number | null, number | null];
    if (found !== rows || total !== sum) wrong.set(name, { rows, found });
  }
  return wrong;
}

/** Computes all sums from the tables. Inside a transaction. */
export function sumUp(db: Database.Database): void {
  for (const name of NAMES)
    db.prepare(`INSERT OR REPLACE INTO sums SELECT '${name}', * FROM (${totals(name)})`).run();
}

// Not by an index, which is a copy of its columns.
function totals(name: Summed): string {
  return `SELECT count(*), coalesce(sum(row_hash(${SUMMED[name]})), 0) FROM ${name} NOT INDEXED`;
}
