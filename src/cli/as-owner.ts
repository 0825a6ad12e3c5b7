import { join } from 'node:path';
import type { LoadedConfig } from '../config/config.ts';
import { actAsOwnerOf as act } from '../core/act-as-owner.ts';
import { isStoreUrl } from '../core/place.ts';
import { ownerFolder, DATABASE } from '../journal/owner.ts';

/**
 * A command of root acts as the receiver's user from now on: the receiver could not write to files that root creates.
 * @returns the same config
 * @throws MillraceError usage when root may not do so
 */
export function asOwner<T extends Pick<LoadedConfig, 'config'>>(loaded: T): T {
  actAsOwnerOf(ownerFolder(loaded.config), DATABASE);
  return loaded;
}

/** The same for a folder that is not in the config. @param file a file of the receiver; in a mounted folder it has the owner */
export function actAsOwnerOf(folder: string, file = DATABASE): void {
  if (!isStoreUrl(folder)) act(join(folder, file));
}
