import { lstat, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ERASURE, isWriterFolder, OPEN_FOLDER, WRITER_LOCK } from '../../core/archive.ts';
import { errorCode } from '../../lib/durable.ts';
import { tryOwn, type FileLock } from '../../lib/file-lock.ts';
import { walkFolder } from '../../lib/walk-folder.ts';

/** The writers of an archive: locks that keep them out, and those that live. */
export type Writers = Awaited<ReturnType<typeof holdWriters>>;

/** Locks the folders of writers that have ended, so that their unfinished files can be rewritten, and removes their temporary files. */
export async function holdWriters(root: string) {
  const held: FileLock[] = [];
  const others: string[] = [`${OPEN_FOLDER}/manifest.lock`];
  let none = true;
  for (const name of await writerNames(join(root, OPEN_FOLDER))) {
    const folder = `${OPEN_FOLDER}/${name}`;
    const lock = tryOwn(join(root, folder, WRITER_LOCK), ERASURE);
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
    /** True when no writer lives. */
    none,
    /** Whether a file belongs to a writer that lives, or is a lock. */
    isOthers: (file: string): boolean => others.some((prefix) => file.startsWith(prefix)),
    release: (): void => {
      for (const lock of held) lock.release();
    },
  };
}

/** Real folders only: behind a symbolic link are files of something else. */
async function writerNames(folder: string): Promise<string[]> {
  try {
    if (!(await lstat(folder)).isDirectory()) return [];
    const entries = await readdir(folder, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && isWriterFolder(entry.name))
      .map(({ name }) => name);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
