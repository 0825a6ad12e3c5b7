import { folderError } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { workFolderFor } from '../lib/work-folder.ts';
import { openStore } from '../storage/open.ts';
import { FolderPlace } from './folder-place.ts';
import type { ExportOptions } from './options.ts';
import type { ExportPlace } from './place.ts';
import { StorePlace } from './store-place.ts';

/**
 * Opens the place of an export for writing.
 * @throws MillraceError folder_unwritable, folder_in_use, usage
 */
export async function openPlace({
  out,
  work = workFolderFor(out),
  storage,
}: Pick<ExportOptions, 'out' | 'work' | 'storage'>): Promise<ExportPlace> {
  const store = await openStore(out, storage);
  const isUrl = isStoreUrl(out);
  try {
    return isUrl ? await StorePlace.open(store, work) : await FolderPlace.open(out, store);
  } catch (error) {
    await store.close();
    throw folderError(isUrl ? work : out, error);
  }
}
