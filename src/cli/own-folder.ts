import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { MANIFEST } from '../core/archive.ts';
import { folderError } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { WorkFolder } from '../lib/work-folder.ts';
import { usageError } from './io.ts';

/**
 * Does `work` as the only command that writes the folder, which is made if there is none.
 * @throws MillraceError folder_in_use, folder_unwritable, or usage inside an archive
 */
export async function owningFolder<T>(path: string, work: () => Promise<T>): Promise<T> {
  refuseArchives(path);
  const folder = await WorkFolder.take(path).catch((error: unknown) => {
    throw folderError(path, error);
  });
  try {
    return await work();
  } finally {
    folder.release();
  }
}

/**
 * Whoever reads an archive takes every NDJSON file below it for events.
 * @param path a folder, or a URL, which is not looked into
 * @throws MillraceError usage when the folder is one, or lies inside one; and for a URL of an unknown kind
 */
export function refuseArchives(path: string): void {
  if (isStoreUrl(path)) return;
  let there = resolve(path);
  while (!existsSync(there) && dirname(there) !== there) there = dirname(there);
  for (let folder = realpathSync(there); ; folder = dirname(folder)) {
    if (existsSync(join(folder, MANIFEST)))
      throw usageError(`${path} belongs to the archive ${folder}: name a folder outside of it`);
    if (dirname(folder) === folder) return;
  }
}
