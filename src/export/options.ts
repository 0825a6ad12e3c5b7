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
  /** Local folder for unfinished files, when `out` is a URL. */
  readonly work?: string;
  /** How stores are reached. */
  readonly storage?: StorageSettings;
  readonly tables: Tables;
  /** One, several joined with commas, or `all`; with the tables nested in them. */
  readonly table: string;
  /** The columns that were asked for, when `tables` has a table with only some; another run needs the same. */
  readonly columns?: readonly string[];
  readonly format: OutputFormat;
  readonly compression: Compression;
  readonly partition: 'dt' | 'none';
  readonly selection: Selection;
  /** A step ends with the archive file that makes its records this large. */
  readonly stepBytes: number;
  /** Exports everything again, and removes what was exported before. */
  readonly again: boolean;
  /** The current day, UTC, such as `2026-11-21`, of a followed export: days before it become one step each. */
  readonly today?: string;
  /** Called once, after the files are listed, so that it has the keys of all records in them. */
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

/** What one run has done: an export, or a load into a database. */
export interface RunSummary {
  /** Files of the archives that were done by earlier runs. */
  readonly before: number;
  /** Files of earlier runs whose rows were removed or replaced, because their archive has changed. */
  readonly replaced: number;
  /** Unfinished files of a running receiver: their records come with the next run. */
  readonly unfinished: number;
  readonly records: number;
  readonly rows: Readonly<Record<string, number>>;
  readonly rejects: number;
  /** Differences between documents and the definitions of their tables. */
  readonly drift: readonly TableDrift[];
  /** Records and files that could not be read, or not to their end. */
  readonly problems: number;
  /** Files that a manifest lists and that are not there; their rows stay. */
  readonly missing: number;
  /** Sealed records whose keys an erasure has destroyed. */
  readonly erased: number;
  /** False when it was interrupted; the next run continues. */
  readonly complete: boolean;
}

export interface ExportSummary extends RunSummary {
  readonly steps: number;
  /** Files of the archives that were read, and those that hold nothing wanted, as the manifest says. */
  readonly read: number;
  readonly passed_over: number;
  /** Files that were written, and their bytes. */
  readonly files: number;
  readonly bytes: number;
  /** Events by type that have no table, or a shape that their table does not know. */
  readonly without_table: Readonly<Record<string, number>>;
  /** Files of the export itself that are gone. */
  readonly lost: number;
}
