import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MillraceError, messageOf } from '../core/errors.ts';
import { isMissing, readPlain } from '../lib/durable.ts';
import { walkFolder } from '../lib/walk-folder.ts';
import { byKind, isUnfinished, ofOne } from './file-kind.ts';
import { ReplacedFiles } from './replaced-files.ts';
import type { ArchiveListing, ArchivePlace, FileState } from './place.ts';
import { standing } from './standing.ts';

/** An archive in a folder of this machine. */
export class FolderPlace implements ArchivePlace {
  readonly root: string;
  /** The only file of it that is meant; null for all. */
  readonly #only: string | null;
  readonly #moved = new ReplacedFiles(this, {
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
    const about = { place: this, root: this.root, isFolder: this.#only === null };
    if (this.#only !== null) return { ...about, ...byKind([]), ...ofOne(this.#only) };
    try {
      // A folder of unfinished files may go while a receiver runs; the archive itself may not.
      const { files, links, others } = await walkFolder(this.root, { mayGo: isUnfinished });
      const kinds = byKind(files);
      const counted = await standing(this, kinds);
      return { ...about, ...kinds, ...counted, notFollowed: [...links, ...others].sort() };
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
