import { isCompacted } from '../core/archive.ts';
import { folderError, messageOf, MillraceError } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import type { OpenProof } from '../core/proof.ts';
import { isSystemError } from '../lib/durable.ts';
import { candidatesOf, groupsOf, lineOf, type Candidate } from './compact-plan.ts';
import { holdFolder, holdStore, type CompactPlace } from './compact-place.ts';
import { Compactions } from './compactions.ts';
import { hashChunks } from '../lib/hash-chunks.ts';
import { joinFiles, type JoinOptions } from './join-files.ts';
import type { Trust } from './judge.ts';
import { readManifest } from './manifest.ts';
import { holdsNothing, listArchive, type Places } from './places.ts';

export interface CompactOptions extends JoinOptions {
  readonly places: Places;
  /** Size of the largest file made; files of half of it are not joined. */
  readonly targetBytes: number;
  /** Least age of a file in milliseconds. */
  readonly minAge: number;
  readonly dryRun: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly trust: Trust;
  /** Signs new lines; required for a signed manifest. */
  readonly proof: OpenProof | undefined;
  /** Called for each file that was made, or would be on a dry run. */
  readonly onMade: (made: { readonly file: string; readonly files: number; readonly bytes: number }) => void;
  readonly onProgress: (done: number, total: number, file: string) => void;
  /** Called for files that could not be joined or removed. */
  readonly onProblem: (file: string, reason: string) => void;
  /** Called for files that the manifest does not list, which stay. */
  readonly onUnlisted: (file: string) => void;
}

export interface CompactReport {
  /** Files made, files replaced, and the bytes in them. */
  readonly made: number;
  readonly replaced: number;
  readonly bytes: number;
  /** Leftovers of earlier runs that were removed. */
  readonly cleared: number;
  readonly problems: number;
  /** False when it was interrupted. */
  readonly complete: boolean;
}

/**
 * Joins small finished files of each folder of an archive: writes the new file, then its line, then removes the old
 * files. Readers follow the manifest, so each event counts once wherever a kill comes; the next run removes leftovers.
 * @throws MillraceError archive_unreadable, archive_in_use, folder_in_use, usage; StorageError
 */
export async function compactArchive(path: string, options: CompactOptions): Promise<CompactReport> {
  const place = options.dryRun ? null : await hold(path, options);
  try {
    return await new CompactRun(options, await readUncompacted(path, options)).run(place);
  } catch (error) {
    if (place === null || isStoreUrl(path) || !isSystemError(error)) throw error;
    const said =
      'every event is still read once, from the old file or the new one; make room, or repair the disk, and run it again';
    throw folderError(path, new Error(`${messageOf(error)}; ${said}`, { cause: error }));
  } finally {
    await place?.release();
  }
}

async function hold(path: string, { places, proof, signal }: CompactOptions): Promise<CompactPlace> {
  const { root } = await places.open(path);
  const store = await places.store(root);
  if (!isStoreUrl(path)) return holdFolder(root, store, proof);
  for await (const _ of store.list('', signal)) return holdStore(store, proof, signal);
  // The lease would be the first object of a mistyped prefix.
  throw holdsNothing(root);
}

/** An archive before a compaction. */
type Uncompacted = Awaited<ReturnType<typeof readUncompacted>>;

/** Reads an archive that the caller holds. @throws MillraceError */
async function readUncompacted(path: string, options: CompactOptions) {
  const { places, trust, proof, targetBytes, minAge, now, dryRun } = options;
  const listing = await listArchive(path, places);
  const refusal = (detail: string): MillraceError =>
    new MillraceError('archive_unreadable', `${path}: ${detail}`);
  if (!listing.isFolder || listing.manifest.length === 0)
    throw refusal('name the folder of an archive with its manifest');
  const manifest = await readManifest(listing, { trust });
  if (manifest.chains.some(({ isForged, brokenAt }) => isForged || brokenAt !== null))
    throw refusal('its manifest is damaged; see `millrace archive verify`, and restore it first');
  if (manifest.signatures.signed > 0 && proof === undefined && !dryRun)
    throw new MillraceError('usage', `${path}: its manifest is signed, so the key from --config is needed`);
  const { found, unlisted } = await candidatesOf(listing, manifest, { targetBytes, before: now - minAge });
  for (const file of unlisted) options.onUnlisted(file);
  return { listing, manifest, found };
}

class CompactRun {
  readonly #options: CompactOptions;
  readonly #counts = { made: 0, replaced: 0, bytes: 0, cleared: 0, problems: 0 };
  readonly #archive: Uncompacted;
  /** By name. */
  readonly #candidates: Map<string, Candidate>;

  constructor(options: CompactOptions, archive: Uncompacted) {
    this.#options = options;
    this.#archive = archive;
    this.#candidates = new Map(archive.found.map((one) => [one.file, one]));
  }

  async run(place: CompactPlace | null): Promise<CompactReport> {
    const { targetBytes, signal, onMade } = this.#options;
    if (place !== null) await this.#clear(place);
    for (;;) {
      const groups = groupsOf([...this.#candidates.values()], targetBytes);
      const total = groups.reduce((sum, { length }) => sum + length, 0);
      let done = 0;
      for (const group of groups) {
        if (signal.aborted) return { ...this.#counts, complete: false };
        this.#options.onProgress(done, total, group[0]?.file ?? '');
        done += group.length;
        if (place === null) {
          const bytes = group.reduce((sum, one) => sum + one.bytes, 0);
          const { file } = lineOf(group, { bytes, sha256: '' });
          onMade({ file, files: group.length, bytes });
          this.#count(group, bytes);
        } else if (!(await this.#join(place, group))) return { ...this.#counts, complete: false };
      }
      // A file just made can be joined again, and a bad one leaves room in its group.
      if (groups.length === 0 || place === null) return { ...this.#counts, complete: true };
    }
  }

  /** @returns false when it was interrupted */
  async #join(place: CompactPlace, group: readonly Candidate[]): Promise<boolean> {
    const { signal, onMade } = this.#options;
    try {
      const joined = await joinFiles(place, group, this.#options);
      if ('bad' in joined) {
        for (const { file, reason } of joined.bad) {
          this.#candidates.delete(file);
          this.#problem(file, reason);
        }
        return true;
      }
      for (const { file } of group) this.#candidates.delete(file);
      this.#candidates.set(joined.line.file, { ...joined.line, previous: '' });
      if (joined.line.bytes >= this.#options.targetBytes / 2) this.#candidates.delete(joined.line.file);
      for (const { file, reason } of joined.left) this.#problem(file, reason);
      this.#count(group, joined.line.bytes);
      onMade({ file: joined.line.file, files: group.length, bytes: joined.line.bytes });
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      throw error;
    }
  }

  /** Removes files that an earlier run has replaced, or made and not listed. */
  async #clear(place: CompactPlace): Promise<void> {
    const { listing, manifest } = this.#archive;
    const { signal } = this.#options;
    const compactions = new Compactions(manifest.compactions);
    const sound = new Map<string, boolean>();
    for (const file of listing.aside) {
      signal.throwIfAborted();
      const holder = this.#holderOf(file, compactions);
      if (holder === null) {
        // Its maker, if it still runs, finds it missing and keeps the old files.
        if (isCompacted(file) && !manifest.compactions.has(file))
          this.#counts.cleared += await this.#remove(place, file, true);
        continue;
      }
      // Only when the new file is as listed, and never unknown bytes.
      if (!sound.has(holder)) {
        const made = await hashChunks(listing.place.chunks(holder));
        sound.set(holder, made.sha256 === manifest.entries.get(holder)?.sha256);
      }
      const known = [manifest.entries.get(file)?.sha256, ...compactions.hashesOf(file)];
      const { sha256 } = await hashChunks(listing.place.chunks(file));
      if (sound.get(holder) === false)
        this.#problem(holder, 'it is not as the manifest says; see `millrace archive verify`');
      else if (known.includes(sha256)) this.#counts.cleared += await this.#remove(place, file, false);
      else this.#problem(file, `was replaced by ${holder}, and other bytes lie there now`);
    }
  }

  /** The file that counts instead of a replaced one. */
  #holderOf(file: string, compactions: Compactions): string | null {
    for (const { file: by } of compactions.madeOf(file)) {
      if (this.#archive.listing.files.includes(by)) return by;
      const further = this.#holderOf(by, compactions);
      if (further !== null) return further;
    }
    return null;
  }

  async #remove(place: CompactPlace, file: string, andVersions: boolean): Promise<number> {
    const left = await place.remove([file], { andVersions });
    for (const { reason } of left) this.#problem(file, reason);
    return 1 - left.length;
  }

  #count(group: readonly Candidate[], bytes: number): void {
    this.#counts.made += 1;
    this.#counts.replaced += group.length;
    this.#counts.bytes += bytes;
  }

  #problem(file: string, reason: string): void {
    this.#counts.problems += 1;
    this.#options.onProblem(file, reason);
  }
}
