import type { Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoredObject } from '../../core/storage.ts';
import { isMissing } from '../../lib/durable.ts';
import { isOwnName, objectOf } from './names.ts';

/** Plain files below a folder whose keys begin with the prefix, in order of their keys' bytes. Links are left out. */
export async function* listFolder(root: string, prefix: string): AsyncGenerator<StoredObject> {
  yield* below(root, '', prefix);
}

async function* below(root: string, folder: string, prefix: string): AsyncGenerator<StoredObject> {
  for (const [key, isFolder] of await entriesOf(root, folder)) {
    // A folder is on the way to the prefix, or inside it.
    if (isFolder && (key.startsWith(prefix) || prefix.startsWith(key))) yield* below(root, key, prefix);
    if (isFolder || !key.startsWith(prefix)) continue;
    try {
      const stats = await lstat(join(root, key), { bigint: true });
      if (stats.isFile()) yield objectOf(key, stats);
    } catch (error) {
      // Removed meanwhile.
      if (!isMissing(error)) throw error;
    }
  }
}

/** Keys in one folder, in order; that of a folder ends with `/`, as it does in the keys of its files. */
async function entriesOf(root: string, folder: string): Promise<[key: string, isFolder: boolean][]> {
  let entries: Dirent[];
  try {
    entries = await readdir(join(root, folder), { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  return entries
    .filter((entry) => entry.isDirectory() || (entry.isFile() && !isOwnName(entry.name)))
    .map((entry): [string, boolean] => [
      `${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`,
      entry.isDirectory(),
    ])
    .sort(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
}
