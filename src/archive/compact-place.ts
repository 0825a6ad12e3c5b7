import { randomBytes } from 'node:crypto';
import { link, realpath, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { OPEN_FOLDER } from '../core/archive.ts';
import type { NewManifestLine } from '../core/archive-manifest.ts';
import { chainPrefix, COMPACTIONS } from '../core/archive-segments.ts';
import { folderError, messageOf, MillraceError } from '../core/errors.ts';
import { removeForGood } from '../core/objects.ts';
import type { OpenProof } from '../core/proof.ts';
import { SILENT } from '../core/sink.ts';
import type { ObjectStore } from '../core/storage.ts';
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

/** A file, and what is to be said of it. */
export interface Remark {
  readonly file: string;
  readonly reason: string;
}

interface Removing {
  /** What a store keeps of it beside its present state goes as well. */
  readonly forGood?: boolean;
  /** A file stays that has another by now: nobody knows what is in it. */
  readonly versions?: ReadonlyMap<string, string>;
  /** Told of each file that is gone. */
  readonly onRemoved?: () => void;
}

/** Requests to a store at a time. */
export const AT_ONCE = 16;

/** An archive that one compaction at a time writes to. */
export interface CompactPlace {
  readonly store: ObjectStore;
  /**
   * Writes a file, whole and durable, over nothing else.
   * @param like in a folder, whose it is to be and who may read it
   * @returns its version
   */
  put(file: string, bytes: Buffer, like: string): Promise<string>;
  /** Adds a line to the manifest. */
  list(line: NewManifestLine): Promise<void>;
  /** Whether another compaction has listed it. */
  isListed(file: string): Promise<boolean>;
  /** @returns what could not be removed */
  remove(files: readonly string[], how?: Removing): Promise<readonly Remark[]>;
  /** @throws MillraceError archive_in_use when it is not ours any more */
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
  // An erasure takes this lock too, and waits for its end.
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
      remove: (files, how) => removeFiles({ root, store }, files, how),
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
    const chain = new ManifestChain({
      store,
      writer: COMPACTIONS,
      shared: true,
      log: SILENT,
      proof,
      folder: null,
      signal,
    });
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
        const place = new StoredArchive(store.url, () => Promise.resolve(store));
        const manifest = await Array.fromAsync(store.list(chainPrefix(COMPACTIONS)), ({ key }) => key);
        return (await readManifest({ place, manifest })).compactions.has(file);
      },
      remove: (files, how) => removeObjects(store, files, how),
      check: () => lease.check(),
      release: () => lease.release(),
    };
  } catch (error) {
    await lease.release();
    throw error;
  }
}

/** Under a name that no reader takes for a file of the archive, and then by its own. */
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
    // Giving it to another owner takes the right to.
    await made.handle.chown(owner.uid, owner.gid).catch(() => undefined);
  });
  try {
    await nameAnew(temporary, join(root, file));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  await rm(temporary, { force: true });
  await syncFolder(dirname(join(root, file)));
  return (await store.head(file))?.version ?? '';
}

/** Over nothing else. */
async function nameAnew(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (error) {
    // A file system without hard links, as some network shares are; the name is ours, and nothing lies there.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(errorCode(error))) throw error;
    await rename(temporary, path);
  }
}

async function removeFiles(
  { root, store }: { readonly root: string; readonly store: ObjectStore },
  files: readonly string[],
  { versions, onRemoved }: Removing = {},
): Promise<Remark[]> {
  const left: Remark[] = [];
  for (const file of files) {
    try {
      const version = versions?.get(file);
      if (version !== undefined && ((await store.head(file))?.version ?? version) !== version) {
        left.push({ file, reason: REPLACED });
        continue;
      }
      await unlink(join(root, file));
      onRemoved?.();
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') left.push({ file, reason: notRemoved(error) });
    }
  }
  for (const folder of new Set(files.map((file) => dirname(join(root, file))))) await syncFolder(folder);
  return left;
}

async function removeObjects(
  store: ObjectStore,
  files: readonly string[],
  { forGood = false, versions, onRemoved }: Removing = {},
): Promise<Remark[]> {
  const left = await mapAtMost(AT_ONCE, files, async (file): Promise<Remark[]> => {
    try {
      if (!forGood && (await store.delete(file, versions?.get(file))) === 'changed')
        return [{ file, reason: REPLACED }];
      const kept = forGood ? await removeForGood(store, [file]) : [];
      onRemoved?.();
      return kept.map((reason) => ({ file, reason }));
    } catch (error) {
      return [{ file, reason: notRemoved(error) }];
    }
  });
  return left.flat();
}

const REPLACED = 'another program has replaced it meanwhile; it stays, and is not read any more';

function notRemoved(error: unknown): string {
  return `could not be removed, and is not read any more: ${messageOf(error)}`;
}
