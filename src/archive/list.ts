import type { Dirent } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CLAIMS_FOLDER, MANIFEST, OPEN_FOLDER, PART_EXTENSION } from '../core/archive.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import { errorCode } from '../lib/durable.ts';

/** Ends the names of files that are being written. */
export const TEMPORARY_EXTENSION = '.tmp';

/** What lies in an archive folder. Paths are relative to `root`, `/`-separated, in order of their text. */
export interface ArchiveListing {
  /** Absolute; the folder the manifest lies in, or the folder of a single file. */
  readonly root: string;
  /** Finished files: every name with `.ndjson` in it, as `*.ndjson*` finds them. */
  readonly files: readonly string[];
  /** Unfinished files: records not compressed and not in the manifest yet. */
  readonly parts: readonly string[];
  /** Events kept whole because they were too large for a sink. */
  readonly claims: readonly string[];
  /** What a writer was in the middle of; left over when it was killed. */
  readonly temporary: readonly string[];
  /** Symbolic links, FIFOs and the like, which are never followed. */
  readonly notFollowed: readonly string[];
  readonly hasManifest: boolean;
  /** False when the path named a single file. */
  readonly isFolder: boolean;
}

/**
 * Lists an archive, or a single file of one.
 * @throws MillraceError archive_unreadable
 */
export async function listArchive(path: string): Promise<ArchiveListing> {
  try {
    const root = await realpath(path);
    if ((await lstat(root)).isDirectory()) return await listFolder(root);
    const none = {
      parts: [],
      claims: [],
      temporary: [],
      notFollowed: [],
      hasManifest: false,
      isFolder: false,
    };
    return { root: dirname(root), files: [basename(root)], ...none };
  } catch (error) {
    throw new MillraceError('archive_unreadable', `${path}: ${messageOf(error)}`, { cause: error });
  }
}

async function listFolder(root: string): Promise<ArchiveListing> {
  const kinds = { file: [], part: [], claim: [], temporary: [], notFollowed: [] } as Record<Kind, string[]>;
  let hasManifest = false;
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await entriesOf(root, folder)) {
      const file = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) folders.push(file);
      else if (file === MANIFEST && entry.isFile()) hasManifest = true;
      else {
        const kind = entry.isFile() ? kindOf(file, entry.name) : 'notFollowed';
        if (kind !== null) kinds[kind].push(file);
      }
    }
  }
  for (const names of Object.values(kinds)) names.sort();
  const { file: files, part: parts, claim: claims, temporary, notFollowed } = kinds;
  return { root, files, parts, claims, temporary, notFollowed, hasManifest, isFolder: true };
}

type Kind = 'file' | 'part' | 'claim' | 'temporary' | 'notFollowed';

/** Null for what is not of this archive. */
function kindOf(file: string, name: string): Kind | null {
  if (file.startsWith(`${OPEN_FOLDER}/`)) {
    if (name.endsWith(PART_EXTENSION)) return 'part';
    return name.endsWith(TEMPORARY_EXTENSION) ? 'temporary' : null;
  }
  if (name.includes('.ndjson')) return 'file';
  if (!file.startsWith(`${CLAIMS_FOLDER}/`)) return null;
  if (name.endsWith(TEMPORARY_EXTENSION)) return 'temporary';
  return /\.json(\.gz)?$/.test(name) ? 'claim' : null;
}

/** A folder of unfinished files may go while a receiver runs; the archive itself may not. */
async function entriesOf(root: string, folder: string): Promise<Dirent[]> {
  try {
    return await readdir(join(root, folder), { withFileTypes: true });
  } catch (error) {
    if (folder.startsWith(`${OPEN_FOLDER}/`) && errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
