import { join } from 'node:path';
import type { LoadedConfig } from '../config/config.ts';
import { actAsOwnerOf as act } from '../core/act-as-owner.ts';
import { isStoreUrl } from '../core/place.ts';
import { ownerFolder, DATABASE } from '../journal/owner.ts';

/**
 * For a command that may write to the folders of a receiver: run by root, it acts as the receiver's user from now on, for
 * the receiver could not write to what root has created.
 * @returns the same config
 * @throws MillraceError usage where root may not do so
 */
export function asOwner<T extends Pick<LoadedConfig, 'config'>>(loaded: T): T {
  actAsOwnerOfJournal(ownerFolder(loaded.config));
  return loaded;
}

/** The same for the folder of a journal. */
export function actAsOwnerOfJournal(folder: string): void {
  actAsOwnerOf(folder, DATABASE);
}

/**
 * The same for a folder, such as that of an archive; a place in a store has no owner here.
 * @param file what the receiver has in it from the start: where a folder of somebody's is mounted, that says who the receiver is
 */
export function actAsOwnerOf(folder: string, file: string): void {
  if (!isStoreUrl(folder)) act(join(folder, file));
}
