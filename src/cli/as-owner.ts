import { join } from 'node:path';
import type { LoadedConfig } from '../config/config.ts';
import { messageOf } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { ownerFolder, DATABASE } from '../journal/owner.ts';
import { note, usageError, type Io } from './io.ts';

/**
 * For a command that may write to the folders of a receiver: run by root, it acts as the receiver's user from now on, for
 * the receiver could not write to what root has created.
 * @returns the same config
 * @throws MillraceError usage where root may not do so
 */
export function asOwner<T extends Pick<LoadedConfig, 'config'>>(loaded: T, io: Io): T {
  actAsOwnerOfJournal(ownerFolder(loaded.config), io);
  return loaded;
}

/** The same for the folder of a journal. */
export function actAsOwnerOfJournal(folder: string, io: Io): void {
  actAsOwnerOf(folder, DATABASE, io);
}

/**
 * The same for a folder, such as that of an archive; a place in a store has no owner here.
 * @param file what the receiver has in it from the start: where a folder of somebody's is mounted, that says who the receiver is
 */
export function actAsOwnerOf(folder: string, file: string, io: Io): void {
  if (isStoreUrl(folder)) return;
  const path = join(folder, file);
  let user: string | null | undefined;
  try {
    user = io.actAsOwnerOf?.(path);
  } catch (error) {
    throw usageError(`run it as the user who owns ${path}, with sudo -u: ${messageOf(error)}`);
  }
  if (typeof user === 'string') note(io, `acting as ${user}, who owns ${path}`);
}
