import type { RecordOpener } from '../../core/sealed-record.ts';
import type { Database } from '../../tables/database/database.ts';
import type { ShapesOptions } from '../../tables/database/shapes.ts';
import type { LoadedTables } from '../../tables/database/tables.ts';
import type { ExportOptions, RunSummary } from '../options.ts';

type Shared = Pick<
  ExportOptions,
  'paths' | 'places' | 'tables' | 'opener' | 'signal' | 'onProgress' | 'onProblem' | 'onReject'
>;

export interface LoadOptions extends Shared, ShapesOptions {
  /** Names of tables to be kept up to date, besides those that the database has already. Default with an archive: `events`. */
  readonly wanted: readonly string[];
  /** A transaction ends with the file that makes its records this large. */
  readonly stepBytes: number;
  /** Then files of which the database has refused rows are loaded again, and vanished rows of sinks are removed. */
  readonly isFirstRound: boolean;
}

/** What one round has done. */
export interface LoadSummary extends RunSummary {
  /** Files that were loaded. */
  readonly files: number;
  /** Records of events that the database had already, from another file or a sink. */
  readonly duplicates: number;
  /** Rows that were removed because a later pull of a backfill does not have them, or has them itself. */
  readonly vanished: number;
}

const NO_NUMBERS = {
  files: 0,
  replaced: 0,
  records: 0,
  duplicates: 0,
  vanished: 0,
  rejects: 0,
  problems: 0,
  erased: 0,
};

/** What loading some files has done, as `LoadSummary` has it. */
export type LoadCounts = typeof NO_NUMBERS & { readonly rows: Record<string, number> };

export function noCounts(): LoadCounts {
  return { ...NO_NUMBERS, rows: {} };
}

export function addCounts(counts: LoadCounts, more: LoadCounts): void {
  for (const name of Object.keys(NO_NUMBERS) as (keyof typeof NO_NUMBERS)[]) counts[name] += more[name];
  for (const [table, rows] of Object.entries(more.rows))
    counts.rows[table] = (counts.rows[table] ?? 0) + rows;
}

/** What a run loads into, and with which options. */
export interface LoadTerms {
  readonly database: Database;
  readonly tables: LoadedTables;
  readonly opener: RecordOpener | undefined;
  readonly options: LoadOptions;
}
