import { stat } from 'node:fs/promises';
import type { ErasureRun } from '../core/erasure.ts';
import type { IdSearch } from '../core/id-search.ts';
import type { LineOwners } from './file-kinds.ts';
import type { Listing } from './listing.ts';

/** What an erasure of one archive in a folder works with. */
export interface FolderJob {
  /** Absolute; an archive's own folder. */
  readonly root: string;
  /** Where it lies in the store, with a `/` at its end; empty for the store itself. */
  readonly prefix: string;
  readonly run: ErasureRun;
  readonly search: IdSearch;
  readonly owners: LineOwners;
  readonly listing: Listing;
  /** Files that went away before they could be looked at. */
  readonly vanished: string[];
  /** Nobody else writes here. */
  readonly alone: boolean;
}

/** Rows that are not complete yet: they have another name then, and whoever writes them keeps the file open. */
export async function isBeingWritten(path: string): Promise<boolean> {
  return path.endsWith('.ndjson.part') && !(await isAbandoned(path));
}

/** Milliseconds without a write after which an unfinished file of rows has lost its writer. */
const ABANDONED_AFTER = 600_000;

export async function isAbandoned(path: string): Promise<boolean> {
  return Date.now() - (await stat(path)).mtimeMs >= ABANDONED_AFTER;
}

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
