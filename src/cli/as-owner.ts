import type { LoadedConfig } from '../config/config.ts';
import { messageOf } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { ownerFolder } from '../journal/owner.ts';
import { note, usageError, type Io } from './io.ts';

/**
 * For a command that may write to the folders of a receiver: run by root, it acts as the receiver's user from now on, for
 * the receiver could not write to what root has created.
 * @returns the same config
 * @throws MillraceError usage where root may not do so
 */
export function asOwner<T extends Pick<LoadedConfig, 'config'>>(loaded: T, io: Io): T {
  actAsOwnerOf(ownerFolder(loaded.config), io);
  return loaded;
}

/** The same for a folder, such as that of an archive; a place in a store has no owner here. */
export function actAsOwnerOf(folder: string, io: Io): void {
  if (isStoreUrl(folder)) return;
  let user: string | null | undefined;
  try {
    user = io.actAsOwnerOf?.(folder);
  } catch (error) {
    throw usageError(`run it as the user who owns ${folder}, with sudo -u: ${messageOf(error)}`);
  }
  if (typeof user === 'string') note(io, `acting as ${user}, who owns ${folder}`);
}
