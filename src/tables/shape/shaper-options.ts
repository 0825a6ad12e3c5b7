import type { OnLeft } from '../learned/drift.ts';
import type { RowReject } from './reject.ts';
import type { RowTarget } from './row-target.ts';

export interface ShaperOptions {
  /** Tables whose rows are wanted, of those that the document makes; the other rows are not written. */
  readonly tables: readonly string[];
  /** Values of columns for which a document may have none, such as `user_id` or `_loaded_at`. */
  readonly given?: Readonly<Record<string, string>>;
  /** Names the file that the documents are of; asked when a row has an unknown key, and no event carries its document. */
  readonly source?: () => string;
  /** Where the rows of each table go. */
  readonly targets: ReadonlyMap<string, RowTarget>;
  onReject(reject: RowReject): void;
  /** Told once of each path that no column reads, or whose value did not fit its column. It is in `extra`. */
  onUnknown?: OnLeft;
}

/** Rows of one table that only have to be handed on. */
export interface ReadyRows {
  readonly table: string;
  /** Lines of NDJSON. */
  readonly rows: Uint8Array;
  readonly count: number;
  /** In how many of them each column had a value of the document. */
  readonly filled: Uint32Array;
}
