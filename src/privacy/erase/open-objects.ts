import { hash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ManifestChain } from '../../archive/manifest-chain.ts';
import { compactingIn } from '../../archive/store-lease.ts';
import { StoredArchive } from '../../archive/stored-archive.ts';
import { leftBy, type ErasureRun } from '../../core/erasure.ts';
import type { OpenProof } from '../../core/proof.ts';
import type { SinkLog } from '../../core/sink.ts';
import { StorageError, type ObjectStore } from '../../core/storage.ts';
import { makeFolder, OWNER_ONLY, readIfThere } from '../../lib/durable.ts';
import { mapAtMost } from '../../lib/map-at-most.ts';
import { writeOnce } from '../../lib/new-file.ts';
import { type ErasableFiles, type Erasing, FileErasure } from './file-erasure.ts';
import { Listing } from './listing.ts';
import type { HeldPlace, Hold } from './place-erasure.ts';

/** Objects whose old versions are asked for at once. */
const AT_ONCE = 16;

export interface ObjectsOptions {
  /** Opens it anew each time. */
  readonly open: () => Promise<ObjectStore>;
  /** A sink of the config writes its archive here: what is taken out is listed, also before anything else is. */
  readonly isArchive: boolean;
  /** Prefixes below it that are none of this place's, each with a `/` at its end. */
  readonly exclude: readonly string[];
  /** The erasure folder: objects are rewritten below it, and the name of its chains lies there. */
  readonly folder: string;
  readonly log: SinkLog;
  readonly proof?: OpenProof;
}

/** A prefix of an object store: an archive, or tables. */
export function holdObjects(options: ObjectsOptions): Hold {
  return async (name, run) => {
    const store = await options.open();
    const isLeft = await leavesToCompaction('start', store, { name, run }).catch(async (error: unknown) => {
      await store.close();
      throw error;
    });
    if (!isLeft) return heldObjects(name, store, options);
    await store.close();
    return null;
  };
}

function heldObjects(name: string, store: ObjectStore, options: ObjectsOptions): HeldPlace {
  const place = new StoredArchive(store.url, () => Promise.resolve(store));
  let { isArchive } = options;
  let begun: { readonly erasure: FileErasure; readonly listing: Listing } | null = null;
  const begin = async (erasing: Erasing): Promise<typeof begun & object> => {
    const { run } = erasing;
    const work = await emptyWork(options.folder);
    const chain = isArchive ? await openChain(store, options, run.signal) : null;
    const listing = new Listing({
      append: chain && ((line) => chain.append([line])),
      manifest: () => place.list(),
    });
    await listing.refresh();
    const erasure = new FileErasure(erasing, filesOf(store, place, { listing, work, signal: run.signal }));
    await erasure.finish(run.recorded.filter((item) => item.store === name));
    return { erasure, listing };
  };
  return {
    store,
    word: 'objects',
    // A compaction may have read an object before it was rewritten, and put its own after the list.
    passes: 2,
    list: async () => {
      const { files, aside, parts, claims, temporary, manifest, others } = await place.list();
      isArchive ||= manifest.length > 0;
      const versions = new Map<string, string>();
      for (const file of [files, aside, parts, claims, temporary, manifest, others].flat())
        if (!options.exclude.some((prefix) => file.startsWith(prefix)))
          versions.set(file, (await place.stat(file))?.version ?? '');
      return versions;
    },
    erase: async (erasing, files) => {
      const { erasure } = (begun ??= await begin(erasing));
      place.expect(files);
      for (const file of files) await erasure.erase(file);
      return [...erasure.vanished.splice(0), ...erasure.replaced.splice(0)];
    },
    finish: async (run) => {
      // Objects that were removed before now may be kept as old versions.
      await mapAtMost(AT_ONCE, [...(begun?.listing.files ?? [])], async (file) => {
        run.signal.throwIfAborted();
        if ((await place.stat(file)) === null) await begun?.erasure.purge(file);
      });
      // One that began meanwhile may have read what is erased by now, and not put it yet.
      await leavesToCompaction('end', store, { name, run });
    },
    release: async () => {
      await place.close();
      await store.close();
    },
  };
}

function filesOf(
  store: ObjectStore,
  place: StoredArchive,
  about: { readonly listing: Listing; readonly work: string; readonly signal: AbortSignal },
): ErasableFiles {
  const { listing, work, signal } = about;
  const temporaryFor = (file: string): string =>
    join(work, `${hash('sha256', file, 'hex').slice(0, 16)}.tmp`);
  return {
    prefix: '',
    bytes: place,
    listing,
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
    local: null,
  };
}

/**
 * The folder for what is written anew. What a kill has left in it are records of anybody, and whoever is erased later is in them.
 * @param folder the erasure folder, which nobody else works in now
 */
async function emptyWork(folder: string): Promise<string> {
  const work = join(folder, 'work');
  await rm(work, { recursive: true, force: true });
  makeFolder(work, 0o700);
  return work;
}

/**
 * While files are joined, what was taken out of one could come back in another: the next run tries again.
 * @param at the end also one that was killed counts, as it may have put a file after the last look
 */
async function leavesToCompaction(
  at: 'start' | 'end',
  store: ObjectStore,
  { name, run }: { readonly name: string; readonly run: ErasureRun },
): Promise<boolean> {
  const found = await compactingIn(store);
  if (found === null || (found.ended && at === 'start')) return false;
  const reason = `it was being compacted by ${found.by}; the erasure is tried again after that`;
  run.leave(leftBy(name, '', run.subjects, new Error(reason)));
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

const FILE = 'writer';

/**
 * What the chains are called that erasures of this installation continue in stores: the same each time, and another than
 * that of any receiver.
 * @param folder the erasure folder
 */
async function erasingWriter(folder: string): Promise<string> {
  const path = join(folder, FILE);
  if (readIfThere(path) === null)
    await writeOnce(path, Buffer.from(`${randomBytes(6).toString('hex')}\n`), OWNER_ONLY);
  const name = readIfThere(path)?.trim() ?? '';
  if (/^[0-9a-f]{12}$/.test(name)) return name;
  throw new Error(`${path} is not 12 hex digits; remove it, and another is made`);
}
