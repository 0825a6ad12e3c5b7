import { lstat, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { OPEN_FOLDER } from '../../core/archive.ts';
import { errorCode } from '../../lib/durable.ts';
import { tryOwn, type FileLock } from '../../lib/file-lock.ts';
import { walkFolder } from '../../lib/walk-folder.ts';

const WRITER = /^[0-9a-f]{12}$/;

/** The folders of unfinished files of an archive: ours while we hold their locks, or those of writers that live. */
export interface Writers {
  /** Whether a file belongs to a writer that lives; also the locks themselves, which hold nothing. */
  isOthers(file: string): boolean;
  /** No writer lives. */
  readonly none: boolean;
  release(): void;
}

/**
 * Takes the place of every writer that is gone, so that its unfinished files can be rewritten: a later writer reads them
 * from the disk. What a writer was compressing when it was killed is removed, as that writer would.
 */
export async function holdWriters(root: string): Promise<Writers> {
  const held: FileLock[] = [];
  const others: string[] = [`${OPEN_FOLDER}/manifest.lock`];
  let none = true;
  for (const name of await writerNames(join(root, OPEN_FOLDER))) {
    const folder = `${OPEN_FOLDER}/${name}`;
    const lock = tryOwn(join(root, folder, 'lock'));
    if (lock === null) {
      none = false;
      others.push(`${folder}/`);
    } else {
      held.push(lock);
      others.push(`${folder}/lock`);
      for (const file of (await walkFolder(join(root, folder))).files) {
        if (file.endsWith('.tmp')) await unlink(join(root, folder, file));
      }
    }
  }
  return {
    none,
    isOthers: (file) => others.some((prefix) => file.startsWith(prefix)),
    release: () => {
      for (const lock of held) lock.release();
    },
  };
}

/** Real folders in a real folder: through a symbolic link, files that are none of this archive's would be removed. */
async function writerNames(folder: string): Promise<string[]> {
  try {
    if (!(await lstat(folder)).isDirectory()) return [];
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory() && WRITER.test(entry.name)).map(({ name }) => name);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
