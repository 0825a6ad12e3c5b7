import type { Places } from '../archive/places.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import type { OnLeft, TableDrift } from '../warehouse/learned/drift.ts';
import type { RowReject } from '../warehouse/shape/reject.ts';
import type { Tables } from '../warehouse/tables.ts';

export interface LoadOptions {
  /** Folders of archives. */
  readonly paths: readonly string[];
  /** Where archives are opened. */
  readonly places: Places;
  readonly tables: Tables;
  /** Names of tables to be kept beside those that the database has already. */
  readonly wanted: readonly string[];
  /** A transaction ends after the file with which it has read so many bytes of records. */
  readonly stepBytes: number;
  /** Files of which the database has refused rows are loaded again. */
  readonly retriesRefused: boolean;
  /** Asked for once, after the files are listed: so the keys of all that is in them are there. */
  readonly opener?: () => Promise<RecordOpener | undefined>;
  readonly signal: AbortSignal;
  onProgress(progress: LoadProgress): void;
  /** A record, or the rest of a file, that cannot be read. */
  onProblem(file: string, line: number | null, reason: string): void;
  onReject(reject: RowReject & { readonly file: string; readonly line: number }): void;
  readonly onUnknown: OnLeft;
  /** An event of this type has no typed table, or a shape that its table does not know. */
  onWithoutTable(eventType: string): void;
}

export interface LoadProgress {
  /** Files of the archives, loaded and to be loaded. */
  readonly done: number;
  readonly total: number;
  readonly records: number;
  readonly file: string;
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
