import { hash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ManifestChain } from '../../archive/manifest-chain.ts';
import { compactingIn } from '../../archive/store-lease.ts';
import { StoredArchive } from '../../archive/stored-archive.ts';
import type { OpenProof } from '../../core/proof.ts';
import type { SinkLog } from '../../core/sink.ts';
import { StorageError, type ObjectStore } from '../../core/storage.ts';
import { isWriterFolder } from '../../core/archive.ts';
import { makeFolder, OWNER_ONLY, readIfThere } from '../../lib/durable.ts';
import { mapAtMost } from '../../lib/map-at-most.ts';
import { writeOnce } from '../../lib/new-file.ts';
import { type ErasableFiles, FileErasure } from './file-erasure.ts';
import { kindOf } from './file-kinds.ts';
import { Listing } from './listing.ts';
import type { OpenedPlace, OpenPlace } from './place-erasure.ts';
import type { PlaceRun } from './place-run.ts';

/** Objects that are purged at once. */
const AT_ONCE = 16;

export interface ObjectsOptions {
  /** Opens the store, once a run. */
  readonly open: () => Promise<ObjectStore>;
  /** True when a sink of the config writes its archive here: what is erased is listed, even before the first line of a manifest. */
  readonly isArchive: boolean;
  /** Prefixes below it that belong to other places, each with a `/` at its end. */
  readonly exclude: readonly string[];
  /** The erasure folder: objects are rewritten in it, and it has the name of the erasures' chains. */
  readonly folder: string;
  readonly log: SinkLog;
  readonly proof?: OpenProof;
}

/** Opens a prefix of an object store: an archive, or tables. */
export function openObjects(options: ObjectsOptions): OpenPlace {
  return async (place) => {
    const store = await options.open();
    try {
      if (!(await leavesToCompaction('start', store, place))) return opened(place, store, options);
    } catch (error) {
      await store.close();
      throw error;
    }
    await store.close();
    return null;
  };
}

function opened(place: PlaceRun, store: ObjectStore, options: ObjectsOptions): OpenedPlace {
  const { run } = place;
  const archive = StoredArchive.in(store);
  let { isArchive } = options;
  let begun: { readonly erasure: FileErasure; readonly listing: Listing } | null = null;
  const begin = async (): Promise<typeof begun & object> => {
    const work = await emptyWork(options.folder);
    const chain = isArchive ? await openChain(store, options, run.signal) : null;
    const listing = new Listing({
      append: chain && ((line) => chain.append([line])),
      manifest: () => archive.list(),
    });
    await listing.refresh();
    const erasure = new FileErasure(place, filesOf(store, archive, listing, work, run.signal));
    await erasure.finish(run.recorded.filter((item) => item.store === place.name));
    return { erasure, listing };
  };
  return {
    store,
    word: 'objects',
    // A compaction may have read an object before it was rewritten, and put its own after the list.
    leastPasses: 2,
    list: async () => {
      const { files, aside, parts, claims, temporary, manifest, others } = await archive.list();
      isArchive ||= manifest.length > 0;
      const versions = new Map<string, string>();
      for (const file of [files, aside, parts, claims, temporary, manifest, others].flat())
        if (!options.exclude.some((prefix) => file.startsWith(prefix)))
          versions.set(file, (await archive.stat(file))?.version ?? '');
      return versions;
    },
    erase: async (files) => {
      const { erasure } = (begun ??= await begin());
      archive.expect(files);
      for (const file of files) await erasure.erase(file);
      return [...erasure.vanished.splice(0), ...erasure.replaced.splice(0)];
    },
    finish: async () => {
      // The store may keep old versions of objects that were removed before.
      await mapAtMost(AT_ONCE, [...(begun?.listing.files ?? [])], async (file) => {
        run.signal.throwIfAborted();
        if ((await archive.stat(file)) === null) await begun?.erasure.purge(file);
      });
      // A compaction that began since may put what it read before.
      await leavesToCompaction('end', store, place);
    },
    close: async () => {
      await archive.close();
      await store.close();
    },
  };
}

function filesOf(
  store: ObjectStore,
  bytes: StoredArchive,
  listing: Listing,
  work: string,
  signal: AbortSignal,
): ErasableFiles {
  const temporaryFor = (file: string): string =>
    join(work, `${hash('sha256', file, 'hex').slice(0, 16)}.tmp`);
  return {
    prefix: '',
    bytes,
    listing,
    kindOf: (file) => {
      const kind = kindOf(file);
      return kind === 'plan' || kind === 'lock' || kind === 'temporary' ? 'other' : kind;
    },
    versionOf: async (file) => {
      const present = await store.head(file, signal);
      if (present === null) throw new StorageError('missing', file);
      return present.version;
    },
    pinned: (version) => ({ chunks: (file) => store.get(file, { version, signal }) }),
    temporaryFor,
    replace: async (file, version, after) => {
      if (after === null) return (await store.delete(file, version, signal)) === 'removed';
      const body = { file: temporaryFor(file), size: after.bytes, sha256: after.sha256 };
      return (await store.putIfMatch(file, version, body, signal)).status === 'written';
    },
    purge: async (file) => (await store.purge(file, signal)).kept,
    ownerOf: () => Promise.resolve(undefined),
    // An object is there whole.
    isBeingWritten: () => Promise.resolve(false),
    discard: () => Promise.resolve(false),
  };
}

/** The folder for rewritten objects, emptied of what a kill has left: it has records of users who may be erased later. */
async function emptyWork(folder: string): Promise<string> {
  const work = join(folder, 'work');
  await rm(work, { recursive: true, force: true });
  makeFolder(work, 0o700);
  return work;
}

/**
 * Leaves the place to a compaction, which could restore what is erased from one file in another; the next run tries again.
 * @param at `end` also counts a compaction that was killed: it may have put a file after the last look
 */
async function leavesToCompaction(
  at: 'start' | 'end',
  store: ObjectStore,
  place: PlaceRun,
): Promise<boolean> {
  const found = await compactingIn(store);
  if (found === null || (found.ended && at === 'start')) return false;
  const reason = `it was being compacted by ${found.by}; the erasure is tried again after that`;
  place.leaveFailed('', new Error(reason));
  return true;
}

async function openChain(
  store: ObjectStore,
  { folder, log, proof }: ObjectsOptions,
  signal: AbortSignal,
): Promise<ManifestChain> {
  const writer = await erasingWriter(folder);
  const chain = new ManifestChain({ store, writer, log, proof, folder: null, signal });
  await chain.open();
  return chain;
}

/** Name of the chains that erasures of this installation write in stores: always the same, and no receiver's. */
async function erasingWriter(folder: string): Promise<string> {
  const path = join(folder, 'writer');
  if (readIfThere(path) === null)
    await writeOnce(path, Buffer.from(`${randomBytes(6).toString('hex')}\n`), OWNER_ONLY);
  const name = readIfThere(path)?.trim() ?? '';
  if (isWriterFolder(name)) return name;
  throw new Error(`${path} is not 12 hex digits; remove it, and another is made`);
}
