import type { Dirent } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MillraceError, messageOf } from '../core/errors.ts';
import { errorCode, isMissing, readPlain } from '../lib/durable.ts';
import { isUnfinished, kindOf, type FileKind } from './file-kind.ts';
import { Moved } from './moved.ts';
import type { ArchiveListing, ArchivePlace, FileState } from './place.ts';
import { standing } from './standing.ts';

/** An archive in a folder of this machine. */
export class FolderPlace implements ArchivePlace {
  readonly root: string;
  /** The only file of it that is meant; null for all. */
  readonly #only: string | null;
  readonly #moved = new Moved(this, {
    open: (file, offset) => readPlain(join(this.root, file), undefined, offset),
    isGone: isMissing,
  });

  constructor(root: string, only: string | null = null) {
    this.root = root;
    this.#only = only;
  }

  /** @param path a folder, or a single file of one. @throws MillraceError archive_unreadable */
  static async open(path: string): Promise<FolderPlace> {
    try {
      const real = await realpath(path);
      if ((await lstat(real)).isDirectory()) return new FolderPlace(real);
      return new FolderPlace(dirname(real), basename(real));
    } catch (error) {
      throw new MillraceError('archive_unreadable', `${path}: ${messageOf(error)}`, { cause: error });
    }
  }

  async list(): Promise<ArchiveListing> {
    const about = { place: this, root: this.root, isFolder: this.#only === null, others: [] };
    try {
      const kinds = this.#only === null ? await listFolder(this.root) : { ...NOTHING, file: [this.#only] };
      const { file: found, part: parts, claim: claims, ...others } = kinds;
      const { files, aside } =
        this.#only === null
          ? await standing(this, { files: found, manifest: others.manifest })
          : { files: found, aside: [] };
      return { ...about, files, aside, parts, claims, ...others };
    } catch (error) {
      throw new MillraceError('archive_unreadable', `${this.root}: ${messageOf(error)}`, { cause: error });
    }
  }

  chunks(file: string): AsyncIterable<Buffer> {
    return this.#moved.read(file);
  }

  moved(file: string): ReturnType<ArchivePlace['moved']> {
    return this.#moved.sliceOf(file);
  }

  async stat(file: string): Promise<FileState | null> {
    const stats = await lstat(join(this.root, file)).catch(() => null);
    return stats?.isFile() === true ? { bytes: stats.size, modified: stats.mtimeMs, version: null } : null;
  }

  /** The disk is near. */
  expect(): void {}

  close(): Promise<void> {
    return Promise.resolve();
  }
}

type Kinds = Readonly<Record<FileKind | 'notFollowed', string[]>>;

const NOTHING: Kinds = { file: [], part: [], claim: [], temporary: [], manifest: [], notFollowed: [] };

async function listFolder(root: string): Promise<Kinds> {
  const kinds: Kinds = { file: [], part: [], claim: [], temporary: [], manifest: [], notFollowed: [] };
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await entriesOf(root, folder)) {
      const file = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) folders.push(file);
      else {
        const kind = entry.isFile() ? kindOf(file) : 'notFollowed';
        if (kind !== null) kinds[kind].push(file);
      }
    }
  }
  for (const names of Object.values(kinds)) names.sort();
  return kinds;
}

/** A folder of unfinished files may go while a receiver runs; the archive itself may not. */
async function entriesOf(root: string, folder: string): Promise<Dirent[]> {
  try {
    return await readdir(join(root, folder), { withFileTypes: true });
  } catch (error) {
    if (isUnfinished(folder) && errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
