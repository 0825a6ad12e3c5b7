import { folderError } from '../core/errors.ts';
import { WorkFolder } from '../lib/work-folder.ts';

/**
 * Does `work` as the only command that writes the folder, which is made if there is none.
 * @throws MillraceError folder_in_use, folder_unwritable
 */
export async function owningFolder<T>(path: string, work: () => Promise<T>): Promise<T> {
  const folder = await WorkFolder.take(path).catch((error: unknown) => {
    throw folderError(path, error);
  });
  try {
    return await work();
  } finally {
    folder.release();
  }
}
