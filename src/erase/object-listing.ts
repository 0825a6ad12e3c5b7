import { hashFile } from '../archive/facts.ts';
import type { ManifestChain } from '../archive/manifest-chain.ts';
import { readManifest } from '../archive/manifest.ts';
import type { ArchiveListing } from '../archive/place.ts';
import type { StorePlace } from '../archive/store-place.ts';
import type { ManifestLine } from '../core/archive-manifest.ts';
import type { ErasedItem } from '../core/erasure.ts';
import { StorageError } from '../core/storage.ts';
import { contentsOf, isListed, lineFor, type Change } from './listing.ts';
import { Contents } from './contents.ts';

/** What the manifest of an archive in a store says of its files, and a chain for what an erasure does to them. */
export class ObjectListing {
  readonly #place: StorePlace;
  /** Null for what is no archive. */
  readonly #chain: ManifestChain | null;
  #entries: ReadonlyMap<string, ManifestLine>;

  private constructor(
    place: StorePlace,
    chain: ManifestChain | null,
    entries: ReadonlyMap<string, ManifestLine>,
  ) {
    this.#place = place;
    this.#chain = chain;
    this.#entries = entries;
  }

  /**
   * @param isArchive known to be one: a receiver may have put its first object, and not the first line yet
   * @param openChain asked only for an archive
   */
  static async open(
    place: StorePlace,
    listed: ArchiveListing,
    isArchive: boolean,
    openChain: () => Promise<ManifestChain>,
  ): Promise<ObjectListing> {
    const chain = isArchive || listed.manifest.length > 0 ? await openChain() : null;
    return new ObjectListing(place, chain, (await readManifest(listed)).entries);
  }

  /** Files that are listed, and were there once. */
  get files(): Iterable<string> {
    return this.#entries.keys();
  }

  /**
   * Whether the newest line says this of a file, or there is none. Another erasure may have replaced it and not said so yet,
   * so the manifest is read again.
   */
  async agrees(file: string, sha256: string): Promise<boolean> {
    if (this.#agrees(file, sha256)) return true;
    this.#entries = (await readManifest(await this.#place.list())).entries;
    return this.#agrees(file, sha256);
  }

  #agrees(file: string, sha256: string): boolean {
    const listed = this.#entries.get(file);
    return listed === undefined || listed.sha256 === sha256;
  }

  /** Durable once it resolves. What is in no archive is not listed. */
  async add(file: string, change: Change): Promise<void> {
    if (this.#chain === null || !isListed(file)) return;
    const before = this.#entries.get(file);
    // The line of another machine's erasure must not be the newer one, whatever its clock says.
    const earliest = before !== undefined && 'erasure' in before ? Date.parse(before.at) + 1 : 0;
    const line = lineFor(file, change, new Date(Math.max(change.at.getTime(), earliest)));
    await this.#chain.append([line]);
    this.#entries = new Map(this.#entries).set(file, { ...line, previous: '' });
  }

  /** Lists what an earlier run had changed when it was ended, before it could say so here. */
  async finish({
    item: file,
    removed,
    sha256_before: before,
    sha256_after: after,
  }: ErasedItem): Promise<void> {
    const listed = this.#entries.get(file);
    if (before === after || (listed !== undefined && listed.sha256 !== before)) return;
    const there = await this.#facts(file);
    if ((there?.sha256 ?? null) !== after) return;
    const contents = there === null ? new Contents() : await contentsOf(this.#place, file);
    const lines = Object.values(removed).reduce((sum, count) => sum + count, 0);
    await this.add(file, { removed, lines, contents, after: there, at: new Date() });
  }

  async #facts(file: string): Promise<{ readonly sha256: string; readonly bytes: number } | null> {
    try {
      return await hashFile(this.#place, file);
    } catch (error) {
      if (error instanceof StorageError && error.fault === 'missing') return null;
      throw error;
    }
  }
}
