import { stat } from 'node:fs/promises';
import { join } from 'node:path';
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
  /** No writer of an archive is at work here. */
  readonly alone: boolean;
  /** We hold the folder of the store, as every command that writes tables into it does. */
  readonly held: boolean;
}

/** Rows that are not complete yet: they have another name then, and whoever writes them keeps the file open. */
export async function isBeingWritten(job: FolderJob, file: string): Promise<boolean> {
  if (!file.endsWith('.ndjson.part') || (await isLeftByBackfill(job, file))) return false;
  return !(await isAbandoned(join(job.root, file)));
}

/** What a backfill that is resumed makes anew: it was ended while it wrote it, as it holds the folder while it lives. */
export async function isLeftByBackfill({ root, prefix, held }: FolderJob, file: string): Promise<boolean> {
  if (!held || prefix !== '' || !/\.(part|tmp)$/.test(file)) return false;
  return file.startsWith('_backfill/') || (!file.includes('/') && (await exists(join(root, '_backfill'))));
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
