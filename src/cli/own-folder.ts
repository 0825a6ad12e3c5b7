import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { MANIFEST } from '../core/archive.ts';
import { folderError } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { WorkFolder } from '../lib/work-folder.ts';
import { usageError } from './io.ts';

/**
 * Runs `work` as the only command that writes to the folder, which is created if missing.
 * @throws MillraceError folder_in_use, folder_unwritable, or usage inside an archive
 */
export async function owningFolder<T>(path: string, work: () => Promise<T>): Promise<T> {
  refuseArchives(path);
  const folder = await WorkFolder.take(path).catch((error: unknown) => {
    throw folderError(path, error);
  });
  return await work().finally(() => folder.release());
}

/**
 * Readers of an archive read every NDJSON file below it as events, so no command writes tables there.
 * @param path a folder, or a URL, which is not checked
 * @throws MillraceError usage for an archive, a folder inside one, and a URL of an unknown kind
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
