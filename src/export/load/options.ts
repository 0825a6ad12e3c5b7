import type { ExportOptions } from '../options.ts';
import type { ShapesOptions } from '../../tables/database/shapes.ts';
import type { TableDrift } from '../../tables/learned/drift.ts';

type Shared = Pick<
  ExportOptions,
  'places' | 'tables' | 'opener' | 'signal' | 'onProgress' | 'onProblem' | 'onReject'
>;

export interface LoadOptions extends Shared, ShapesOptions {
  /** Folders of archives. */
  readonly paths: readonly string[];
  /** Names of tables to be kept beside those that the database has already. */
  readonly wanted: readonly string[];
  /** A transaction ends after the file with which it has read so many bytes of records. */
  readonly stepBytes: number;
  /** Files of which the database has refused rows are loaded again. */
  readonly retriesRefused: boolean;
}

/** What one round has done. */
export interface LoadSummary {
  /** Files loaded now, loaded earlier, and those whose rows were removed or replaced since their file has changed. */
  readonly files: number;
  readonly before: number;
  readonly replaced: number;
  /** Files that a manifest lists and that are not there; their rows stay. */
  readonly missing: number;
  /** Unfinished files of a running receiver: their records come when they are finished. */
  readonly unfinished: number;
  readonly records: number;
  /** Records of events that the database had already, by another file or a sink. */
  readonly duplicates: number;
  readonly rows: Readonly<Record<string, number>>;
  /** How documents differ from what their tables were made for. */
  readonly drift: readonly TableDrift[];
  readonly rejects: number;
  readonly problems: number;
  /** Sealed records whose keys an erasure has destroyed. */
  readonly erased: number;
  /** False when it was interrupted; the next run goes on. */
  readonly complete: boolean;
}
