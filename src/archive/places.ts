import { FolderPlace } from './folder-place.ts';
import type { ArchiveListing, ArchivePlace } from './place.ts';

/** The places of the archives that a command reads, each opened once. */
export class Places {
  readonly #known = new Map<string, ArchivePlace>();

  /**
   * The archive that a path names, or a single file of it.
   * @throws MillraceError archive_unreadable
   */
  async open(path: string): Promise<ArchivePlace> {
    return FolderPlace.open(path);
  }

  /** The place with this root. */
  at(root: string): ArchivePlace {
    const known = this.#known.get(root) ?? new FolderPlace(root);
    this.#known.set(root, known);
    return known;
  }
}

/** Without any other: folders. */
const FOLDERS = new Places();

/** Lists an archive, or a single file of one. @throws MillraceError archive_unreadable */
export async function listArchive(path: string, places = FOLDERS): Promise<ArchiveListing> {
  return (await places.open(path)).list();
}
