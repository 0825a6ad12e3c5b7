import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { MANIFEST } from '../core/archive.ts';
import { errorCode } from '../lib/durable.ts';

/** What lies below a folder; paths relative to it, `/`-separated. */
export interface Walked {
  /** Plain files, in order of their text. */
  readonly files: readonly string[];
  /** Symbolic links, which are not followed. */
  readonly links: readonly string[];
  /** Folders that are archives, outermost first; the folder itself is the empty path. */
  readonly archives: readonly string[];
}

/** @param exclude folders that are not entered, absolute */
export async function walkFolder(root: string, exclude: readonly string[] = []): Promise<Walked> {
  const files: string[] = [];
  const links: string[] = [];
  const archives: string[] = [];
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await entriesOf(join(root, folder))) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isFile()) files.push(path);
      if (entry.isSymbolicLink()) links.push(path);
      if (entry.isFile() && entry.name === MANIFEST) archives.push(folder);
      if (entry.isDirectory() && !exclude.includes(join(root, path))) folders.push(path);
    }
  }
  return { files: files.sort(), links: links.sort(), archives: archives.sort() };
}

/** A writer removes its empty folders at any time. */
async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
