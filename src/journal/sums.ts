import { crc32 } from 'node:zlib';
import type Database from 'better-sqlite3';

/**
 * Columns that the sums of a table cover. `crc` stands for the event in its row. Ids are not covered: a damaged one costs a
 * duplicate, and rows come by the ten thousand.
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

/** Makes `row_hash(…)` known to a connection: 32 bits of any values, and of their kinds. */
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
 * Keep `sums`, how many rows each table has and the sum of their hashes, within each transaction that changes a row. They belong to
 * the connection: what another program writes does not pass as ours.
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

/** A table whose rows are not those that were written. */
export interface WrongSum {
  /** Rows there should be; null when that is damaged, too. */
  readonly rows: number | null;
  readonly found: number;
}

/** Tables that differ from their sums. @throws SQLite's error where a table cannot be read */
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

/** Makes the sums what the tables are. Inside a transaction. */
export function sumUp(db: Database.Database, names: Iterable<Summed> = NAMES): void {
  for (const name of names)
    db.prepare(`INSERT OR REPLACE INTO sums SELECT '${name}', * FROM (${totals(name)})`).run();
}

// Not by an index: that is another copy of its columns.
function totals(name: Summed): string {
  return `SELECT count(*), coalesce(sum(row_hash(${SUMMED[name]})), 0) FROM ${name} NOT INDEXED`;
}
