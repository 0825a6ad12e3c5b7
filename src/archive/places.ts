import { isOldParquet } from '../core/archive.ts';
import { MillraceError } from '../core/errors.ts';
import { isStoreUrl, parsePlace } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import type { StorageSettings } from '../storage/fields.ts';
import { FolderPlace } from './folder-place.ts';
import type { ArchiveListing, ArchivePlace } from './place.ts';
import { StoredArchive } from './stored-archive.ts';

/** Opens a store by its URL. */
export type OpenStore = (url: string) => Promise<ObjectStore>;

/** The places of the archives that a command reads, each opened once. */
export class Places {
  readonly #open: OpenStore;
  readonly #known = new Map<string, ArchivePlace>();
  readonly #stores = new Map<string, Promise<ObjectStore>>();

  /** @param settings how stores are reached; null for the vendors' own defaults */
  constructor(settings: StorageSettings | null = null, open = openWith(settings)) {
    this.#open = open;
  }

  /**
   * The archive that a path or URL names, or a single file of it.
   * @throws MillraceError archive_unreadable; usage for a URL of an unknown kind
   */
  async open(path: string): Promise<ArchivePlace> {
    if (!isStoreUrl(path)) return FolderPlace.open(path);
    const [folder, file] = fileIn(path);
    if (file === null) return this.at(urlOf(path));
    const place = new StoredArchive(folder, () => this.store(folder), file);
    // A prefix may be named like a file.
    return (await place.stat(file)) === null ? this.at(urlOf(path)) : place;
  }

  /** The place with this root. */
  at(root: string): ArchivePlace {
    return getOrMake(this.#known, root, () =>
      isStoreUrl(root) ? new StoredArchive(root, () => this.store(root)) : new FolderPlace(root),
    );
  }

  async close(): Promise<void> {
    for (const place of this.#known.values()) await place.close();
    this.#known.clear();
    for (const opening of this.#stores.values()) await (await opening.catch(() => null))?.close();
    this.#stores.clear();
  }

  /** @param url as `urlOf` gives it; closed with the places */
  store(url: string): Promise<ObjectStore> {
    return getOrMake(this.#stores, url, () => this.#open(url));
  }
}

function openWith(settings: StorageSettings | null): OpenStore {
  return async (url) => {
    // Loaded by who uses a store.
    const { openStore } = await import('../storage/open.ts');
    return settings === null ? openStore(url) : openStore(url, settings);
  };
}

/** As it is written everywhere, without a `/` at its end. */
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

/** Without any other. */
const DEFAULT = new Places();

/** Lists an archive, or a single file of one. @throws MillraceError archive_unreadable */
export async function listArchive(path: string, places = DEFAULT): Promise<ArchiveListing> {
  const listing = await (await places.open(path)).list();
  // A prefix is made by its first object, so one that is mistyped is empty.
  if (isStoreUrl(path) && isEmpty(listing))
    throw new MillraceError(
      'archive_unreadable',
      `${listing.root} holds no objects; check the bucket and prefix`,
    );
  return listing;
}

function isEmpty({ files, aside, parts, claims, temporary, manifest, others }: ArchiveListing): boolean {
  return [files, aside, parts, claims, temporary, manifest, others].every((names) => names.length === 0);
}
