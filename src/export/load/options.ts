import type { ShapesOptions } from '../../tables/database/shapes.ts';
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
  /** Files of which the database has refused rows are loaded again. */
  readonly retriesRefused: boolean;
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
