import { randomBytes } from 'node:crypto';
import { link, realpath, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { OPEN_FOLDER } from '../core/archive.ts';
import type { NewManifestLine } from '../core/archive-manifest.ts';
import { chainPrefix, COMPACTIONS } from './segments.ts';
import { folderError, messageOf, MillraceError } from '../core/errors.ts';
import { removePermanently } from '../core/objects.ts';
import type { OpenProof } from '../core/proof.ts';
import { SILENT } from '../core/sink.ts';
import { type ObjectStore, StorageError } from '../core/storage.ts';
import { ensureFolder, errorCode, syncFolder } from '../lib/durable.ts';
import { mapAtMost } from '../lib/map-at-most.ts';
import { fillNew, NewFile } from '../lib/new-file.ts';
import { WorkFolder } from '../lib/work-folder.ts';
import { ManifestChain } from './manifest-chain.ts';
import { readManifest } from './manifest.ts';
import { ManifestWriter } from './manifest-writer.ts';
import { holdRepairs } from './repair.ts';
import { StoreLease } from './store-lease.ts';
import { StoredArchive } from './stored-archive.ts';

export interface FileProblem {
  readonly file: string;
  readonly reason: string;
}

interface RemoveOptions {
  /** Also deletes old versions and copies that a store keeps. */
  readonly andVersions?: boolean;
  /** A file that has another version is not removed: its content is unknown. */
  readonly versions?: ReadonlyMap<string, string>;
  readonly onRemoved?: () => void;
}

/** Most requests to a store at a time. */
export const AT_ONCE = 16;

/** An archive that one compaction at a time writes to. */
export interface CompactPlace {
  readonly store: ObjectStore;
  /**
   * Writes a whole file, durable, under a name that is not used yet.
   * @param like the file whose owner and mode it gets in a folder
   * @returns its version
   */
  put(file: string, bytes: Buffer, like: string): Promise<string>;
  /** Adds a line to the manifest. */
  list(line: NewManifestLine): Promise<void>;
  /** Whether another compaction has listed the file. */
  isListed(file: string): Promise<boolean>;
  /** @returns files that could not be removed */
  remove(files: readonly string[], options?: RemoveOptions): Promise<readonly FileProblem[]>;
  /** @throws MillraceError archive_in_use when another compaction has taken over */
  check(): Promise<void>;
  release(): Promise<void>;
}

/** @param store the folder as a store. @throws MillraceError folder_in_use, archive_in_use, folder_unwritable */
export async function holdFolder(
  path: string,
  store: ObjectStore,
  proof: OpenProof | undefined,
): Promise<CompactPlace> {
  const root = await realpath(path);
  // An erasure waits for this lock.
  const own = await WorkFolder.take(root).catch((error: unknown) => {
    throw folderError(path, error);
  });
  try {
    const release = await holdRepairs(root);
    const manifest = new ManifestWriter(root, SILENT, proof);
    return {
      store,
      put: (file, bytes, like) => putFile(root, store, { file, bytes, like }),
      list: (line) => manifest.append(line),
      isListed: () => Promise.resolve(false),
      remove: async (files, { versions, onRemoved } = {}) => {
        const left = await removeEach(files, 1, async (file) => {
          const version = versions?.get(file);
          if (version !== undefined && ((await store.head(file))?.version ?? version) !== version)
            return [REPLACED];
          await unlink(join(root, file));
          onRemoved?.();
          return [];
        });
        for (const folder of new Set(files.map(dirname))) await syncFolder(join(root, folder));
        return left;
      },
      check: () => Promise.resolve(),
      release: () => {
        release();
        own.release();
        return Promise.resolve();
      },
    };
  } catch (error) {
    own.release();
    throw error;
  }
}

/** @throws MillraceError archive_in_use, StorageError */
export async function holdStore(
  store: ObjectStore,
  proof: OpenProof | undefined,
  signal: AbortSignal,
): Promise<CompactPlace> {
  const lease = await StoreLease.take(store);
  try {
    const options = { store, log: SILENT, proof, folder: null, signal };
    const chain = new ManifestChain({ ...options, writer: COMPACTIONS, shared: true });
    await chain.open();
    return {
      store,
      put: async (file, bytes) => {
        const put = await store.putIfAbsent(file, { bytes }, signal);
        if (put.status === 'written') return put.version;
        throw new MillraceError('archive_in_use', `${store.url}/${file} is there, with other bytes`);
      },
      list: (line) => chain.append([line]),
      isListed: async (file) => {
        const place = StoredArchive.in(store);
        const manifest = await Array.fromAsync(store.list(chainPrefix(COMPACTIONS)), ({ key }) => key);
        return (await readManifest({ place, manifest })).compactions.has(file);
      },
      remove: (files, { andVersions = false, versions, onRemoved } = {}) =>
        removeEach(files, AT_ONCE, async (file) => {
          if (!andVersions && (await store.delete(file, versions?.get(file))) === 'changed')
            return [REPLACED];
          const kept = andVersions ? await removePermanently(store, [file]) : [];
          onRemoved?.();
          return kept;
        }),
      check: () => lease.check(),
      release: () => lease.release(),
    };
  } catch (error) {
    await lease.release();
    throw error;
  }
}

const REPLACED = 'another program has replaced it; it stays, and is no longer read';

/** @param remove returns why a file stays; a missing file is removed */
async function removeEach(
  files: readonly string[],
  atOnce: number,
  remove: (file: string) => Promise<readonly string[]>,
): Promise<FileProblem[]> {
  const left = await mapAtMost(atOnce, files, async (file): Promise<FileProblem[]> => {
    try {
      return (await remove(file)).map((reason) => ({ file, reason }));
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return [];
      return [{ file, reason: `could not be removed, and is no longer read: ${messageOf(error)}` }];
    }
  });
  return left.flat();
}

/** Writes the file under a temporary name that no query of `*.ndjson*` finds. */
async function putFile(
  root: string,
  store: ObjectStore,
  { file, bytes, like }: { readonly file: string; readonly bytes: Buffer; readonly like: string },
): Promise<string> {
  const owner = await stat(join(root, like));
  const folder = await ensureFolder(root, OPEN_FOLDER);
  const temporary = join(folder, `.${randomBytes(6).toString('hex')}.tmp`);
  await fillNew(NewFile.create(temporary), async (made) => {
    await made.write(bytes);
    await made.handle.chmod(owner.mode & 0o777);
    // Only root may change the owner.
    await made.handle.chown(owner.uid, owner.gid).catch(() => undefined);
  });
  try {
    await linkOrRename(temporary, join(root, file));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  await rm(temporary, { force: true });
  await syncFolder(dirname(join(root, file)));
  const made = await store.head(file);
  if (made === null) throw new StorageError('missing', `${file} is gone, though it was just written`);
  return made.version;
}

/** A link never replaces a file. */
async function linkOrRename(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (error) {
    // Some network shares have no hard links; the name is ours, and not used.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(errorCode(error))) throw error;
    await rename(temporary, path);
  }
}
