import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from './durable.ts';

/** The content of a folder and those below it: relative paths, `/`-separated, in order of their text. */
export interface Walked {
  /** Plain files. */
  readonly files: readonly string[];
  /** Symbolic links, which are not followed. */
  readonly links: readonly string[];
  /** FIFOs, sockets and devices. */
  readonly others: readonly string[];
}

export interface WalkOptions {
  /** Absolute paths of folders that are not entered. */
  readonly exclude?: readonly string[];
  /** True when a folder may be missing when it is listed. */
  readonly mayGo?: (folder: string) => boolean;
}

/** @throws the system's error for a folder that cannot be listed */
export async function walkFolder(
  root: string,
  { exclude = [], mayGo = () => true }: WalkOptions = {},
): Promise<Walked> {
  const found = { files: [] as string[], links: [] as string[], others: [] as string[] };
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await entriesOf(join(root, folder), mayGo(folder))) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isFile()) found.files.push(path);
      else if (entry.isSymbolicLink()) found.links.push(path);
      else if (!entry.isDirectory()) found.others.push(path);
      else if (!exclude.includes(join(root, path))) folders.push(path);
    }
  }
  for (const paths of Object.values(found)) paths.sort();
  return found;
}

async function entriesOf(folder: string, mayGo: boolean): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (mayGo && errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
