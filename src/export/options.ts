import type { Places } from '../archive/places.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import type { TableDrift } from '../tables/learned/drift.ts';
import type { OnExtraField } from '../tables/learned/field-sums.ts';
import type { Tables } from '../tables/tables.ts';
import type { Compression } from '../core/compression.ts';
import type { StorageSettings } from '../storage/fields.ts';
import type { ExportReject, OutputFormat } from './rows.ts';
import type { Selection } from './select.ts';

export interface ExportOptions {
  /** Folders of archives, or single files of one. */
  readonly paths: readonly string[];
  /** Where archives are opened. */
  readonly places: Places;
  /** A folder, or the URL of an object store. */
  readonly out: string;
  /** Local folder for what is not finished, when `out` is a URL. */
  readonly work?: string;
  /** How stores are reached. */
  readonly storage?: StorageSettings;
  readonly tables: Tables;
  /** The tables nested in it come along. */
  readonly table: string;
  readonly format: OutputFormat;
  readonly compression: Compression;
  readonly partition: 'dt' | 'none';
  readonly selection: Selection;
  /** A step ends after the file of the archive with which it has read so many bytes of records. */
  readonly stepBytes: number;
  /** Exports everything anew, and removes what was exported before. */
  readonly again: boolean;
  /** The running day, UTC, such as `2026-11-21`: days before it become one step each. Absent: nothing is known of days. */
  readonly today?: string;
  /** Asked for once, after the files are listed: so the keys of all that is in them are there. */
  readonly opener?: () => Promise<RecordOpener | undefined>;
  readonly signal: AbortSignal;
  onProgress(progress: ExportProgress): void;
  /** A record, or the rest of a file, that cannot be read. */
  onProblem(file: string, line: number | null, reason: string): void;
  onReject(reject: ExportReject): void;
  readonly onUnknown: OnExtraField;
}

export interface ExportProgress {
  /** Files of the archive, read and to be read. */
  readonly done: number;
  readonly total: number;
  readonly records: number;
  readonly file: string;
}

/** What one run has done. */
export interface ExportSummary {
  readonly steps: number;
  /** Files of the archive read now, exported earlier, and passed over as the manifest says what they hold. */
  readonly read: number;
  readonly before: number;
  readonly passed_over: number;
  /** Unfinished files of a running receiver: their records come with the next run. */
  readonly unfinished: number;
  readonly records: number;
  readonly rows: Readonly<Record<string, number>>;
  readonly files: number;
  readonly bytes: number;
  /** Files of earlier runs that were replaced, because what they were made of has changed. */
  readonly replaced: number;
  readonly rejects: number;
  /** Events by their type that have no table, or a shape that their table does not know. */
  readonly without_table: Readonly<Record<string, number>>;
  /** How documents differ from what their tables were made for. */
  readonly drift: readonly TableDrift[];
  /** Records and files that could not be read, or not to their end. */
  readonly problems: number;
  /** Files of the archives that are not there, though nothing says that they went. */
  readonly missing: number;
  /** Files of the export itself that are gone. */
  readonly lost: number;
  /** Sealed records whose keys an erasure has destroyed. */
  readonly erased: number;
  /** False when it was interrupted; the next run continues. */
  readonly complete: boolean;
}
