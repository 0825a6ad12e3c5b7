import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { isOldParquet } from '../core/archive.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import { isStoreUrl, parsePlace } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import type { StorageSettings } from '../storage/fields.ts';
import type { ArchiveListing, ArchivePlace } from './place.ts';
import { StoredArchive } from './stored-archive.ts';

/** Opens the archives that a command reads, each store once. */
export class Places {
  readonly #openRemote: (url: string) => Promise<ObjectStore>;
  readonly #archives = new Map<string, ArchivePlace>();
  readonly #stores = new Map<string, Promise<ObjectStore>>();

  /** @param settings for object stores; null for the vendors' own defaults */
  constructor(
    settings: StorageSettings | null = null,
    openRemote = (url: string): Promise<ObjectStore> => openWith(url, settings),
  ) {
    this.#openRemote = openRemote;
  }

  /**
   * The archive that a path or URL names, or a single file of one.
   * @throws MillraceError archive_unreadable, store_unreadable; usage for a URL of an unknown kind
   */
  async open(path: string): Promise<ArchivePlace> {
    if (!isStoreUrl(path)) return this.#openLocal(path);
    const [folder, file] = fileIn(path);
    if (file === null) return this.at(folder);
    const place = new StoredArchive(folder, () => this.store(folder), { only: file });
    // A prefix can be named like a file.
    return (await place.stat(file)) === null ? this.at(urlOf(path)) : place;
  }

  async #openLocal(path: string): Promise<ArchivePlace> {
    try {
      const real = await realpath(path);
      const stats = await lstat(real);
      if (!stats.isDirectory() && !stats.isFile()) throw new Error('it is neither a plain file nor a folder');
      const [root, only] = stats.isDirectory() ? [real, null] : [dirname(real), basename(real)];
      return new StoredArchive(root, () => this.store(root), { only });
    } catch (error) {
      throw new MillraceError('archive_unreadable', `${path}: ${messageOf(error)}`, { cause: error });
    }
  }

  /** @param root an absolute folder, or a URL as `urlOf` returns it */
  at(root: string): ArchivePlace {
    return getOrMake(this.#archives, root, () => new StoredArchive(root, () => this.store(root)));
  }

  /** @param root as for `at`. @returns a store that is closed with the places */
  store(root: string): Promise<ObjectStore> {
    return getOrMake(this.#stores, root, () =>
      isStoreUrl(root) ? this.#openRemote(root) : openWith(root, null),
    );
  }

  async close(): Promise<void> {
    for (const archive of this.#archives.values()) await archive.close();
    this.#archives.clear();
    for (const opening of this.#stores.values()) await (await opening.catch(() => null))?.close();
    this.#stores.clear();
  }
}

async function openWith(root: string, settings: StorageSettings | null): Promise<ObjectStore> {
  // Loaded with the first store: most commands read none.
  const { openStore } = await import('../storage/open.ts');
  return openStore(root, settings ?? undefined);
}

/** A URL in its one spelling, without `/` at its end; a path as it is. */
export function urlOf(text: string): string {
  const place = parsePlace(text);
  if (place.scheme === 'folder') return place.path;
  const { scheme, bucket, prefix } = place;
  return `${scheme}://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
}

/** Whether a file has events in it, by its name. */
export function holdsEvents(file: string): boolean {
  return /\.(?:ndjson|jsonl|json)(?:\.gz|\.zst)?$/.test(file) || isOldParquet(file);
}

function fileIn(text: string): [folder: string, file: string | null] {
  const url = urlOf(text);
  const place = parsePlace(url);
  if (place.scheme === 'folder' || !holdsEvents(place.prefix)) return [url, null];
  const at = url.lastIndexOf('/');
  return [url.slice(0, at), url.slice(at + 1)];
}

const DEFAULT_PLACES = new Places();

/** Lists an archive, or a single file of one. @throws MillraceError archive_unreadable, store_unreadable */
export async function listArchive(path: string, places = DEFAULT_PLACES): Promise<ArchiveListing> {
  const listing = await (await places.open(path)).list();
  // A prefix exists with its first object: a mistyped one is empty.
  if (isStoreUrl(path) && isEmpty(listing)) throw holdsNothing(listing.root);
  return listing;
}

export function holdsNothing(root: string): MillraceError {
  return new MillraceError('archive_unreadable', `${root} holds no objects; check the bucket and prefix`);
}

function isEmpty({ files, aside, parts, claims, temporary, manifest, others }: ArchiveListing): boolean {
  return [files, aside, parts, claims, temporary, manifest, others].every(({ length }) => length === 0);
}
