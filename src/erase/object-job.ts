import { hash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { compactingIn } from '../archive/store-lease.ts';
import type { StorePlace } from '../archive/store-place.ts';
import { leftBy, type ErasureRun } from '../core/erasure.ts';
import type { IdSearch } from '../core/id-search.ts';
import type { ObjectStore } from '../core/storage.ts';
import type { LineOwners } from './file-kinds.ts';
import type { ObjectListing } from './object-listing.ts';
import { makeFolder, OWNER_ONLY, readIfThere } from '../lib/durable.ts';
import { writeOnce } from '../lib/new-file.ts';

/** What an erasure of one place in a store works with. */
export interface ObjectJob {
  readonly run: ErasureRun;
  readonly store: ObjectStore;
  readonly place: StorePlace;
  readonly search: IdSearch;
  readonly owners: LineOwners;
  readonly listing: ObjectListing;
  /** Folder for what is written anew. */
  readonly temporary: string;
  /** Objects that went away before they could be looked at, and those that something was taken out of. */
  readonly restless: string[];
}

/**
 * The folder for what is written anew. What a kill has left in it are records of anybody, and whoever is erased later is in them.
 * @param folder the erasure folder, which nobody else works in now
 */
export async function emptyWork(folder: string): Promise<string> {
  const work = join(folder, 'work');
  await rm(work, { recursive: true, force: true });
  makeFolder(work, 0o700);
  return work;
}

export function temporaryFor({ temporary }: ObjectJob, file: string): string {
  return join(temporary, `${hash('sha256', file, 'hex').slice(0, 16)}.tmp`);
}

/**
 * While files are joined, what was taken out of one could come back in another: the next run tries again.
 * @param at the end also one that was killed counts, as it may have put a file after the last look
 */
export async function leavesToCompaction(
  at: 'start' | 'end',
  store: ObjectStore,
  { name, run }: { readonly name: string; readonly run: ErasureRun },
): Promise<boolean> {
  const found = await compactingIn(store);
  if (found === null || (found.ended && at === 'start')) return false;
  const reason = `it was being compacted by ${found.by}; the erasure is tried again after that`;
  run.leave(leftBy(name, '', run.subjects, new Error(reason)));
  return true;
}

const FILE = 'writer';

/**
 * What the chains are called that erasures of this installation continue in stores: the same each time, and another than
 * that of any receiver.
 * @param folder the erasure folder
 */
export async function erasingWriter(folder: string): Promise<string> {
  const path = join(folder, FILE);
  if (readIfThere(path) === null)
    await writeOnce(path, Buffer.from(`${randomBytes(6).toString('hex')}\n`), OWNER_ONLY);
  const name = readIfThere(path)?.trim() ?? '';
  if (/^[0-9a-f]{12}$/.test(name)) return name;
  throw new Error(`${path} is not 12 hex digits; remove it, and another is made`);
}
