import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, realpath, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ManifestWriter } from '../../archive/manifest-writer.ts';
import { DISK, type Bytes } from '../../archive/place.ts';
import { StoredArchive } from '../../archive/stored-archive.ts';
import { MANIFEST, OPEN_FOLDER, SENT_EXTENSION } from '../../core/archive.ts';
import { leftBy } from '../../core/erasure.ts';
import type { OpenProof } from '../../core/proof.ts';
import type { SinkLog } from '../../core/sink.ts';
import { errorCode, syncFolder } from '../../lib/durable.ts';
import { FolderRefused } from '../../lib/folder-refused.ts';
import { walkFolder } from '../../lib/walk-folder.ts';
import { WorkFolder } from '../../lib/work-folder.ts';
import { openStore } from '../../storage/open.ts';
import { removeEmpty } from './delta-partition.ts';
import { type ErasableFiles, type Erasing, FileErasure } from './file-erasure.ts';
import { kindOf, NOBODY } from './file-kinds.ts';
import { Listing } from './listing.ts';
import type { HeldPlace, Hold } from './place-erasure.ts';
import { holdWriters } from './writers.ts';

/** Milliseconds without a write after which an unfinished file has lost its writer. */
const ABANDONED_AFTER = 600_000;

export interface FolderOptions {
  readonly path: string;
  /** Folders below it that are none of this place's, absolute. */
  readonly exclude: readonly string[];
  readonly log: SinkLog;
  /** Signs what the manifests of archives say of it. */
  readonly proof?: OpenProof;
  /** Why what was written here is missed; null when it is there. Absent where nothing need have been written yet. */
  readonly missing?: (() => Error | null) | undefined;
}

/** A folder of this machine, with the archives that lie in it. */
export function holdFolder(options: FolderOptions): Hold {
  return async (name, run) => {
    const missing = options.missing?.() ?? null;
    if (missing !== null) run.leave(leftBy(name, '', run.subjects, missing));
    const root = await realpath(options.path).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT') throw error;
      return null;
    });
    if (root === null) return null;
    try {
      return await heldFolder(root, options, await takeFolder(root));
    } catch (error) {
      if (!(error instanceof FolderRefused)) throw error;
      run.leave(leftBy(name, '', run.subjects, error));
      return null;
    }
  };
}

/**
 * A command that writes here, such as a backfill, would restore what is taken out: the next run tries again.
 * @returns null where nothing can be written, which is searched all the same
 */
async function takeFolder(root: string): Promise<WorkFolder | null> {
  try {
    return await WorkFolder.take(root);
  } catch (error) {
    if (error instanceof FolderRefused) throw error;
    return null;
  }
}

async function heldFolder(root: string, options: FolderOptions, own: WorkFolder | null): Promise<HeldPlace> {
  const apart = await Promise.all(options.exclude.map((other) => realpath(other).catch(() => other)));
  const store = await openStore(root);
  const links = new Set<string>();
  /** Folders that are archives, and the place itself. */
  let archives: readonly string[] = [];
  return {
    store,
    word: 'files',
    passes: 1,
    list: async (erasing) => {
      // A writer removes its empty folders at any time.
      const walked = await walkFolder(root, { exclude: apart });
      const below = walked.files.filter((file) => file.endsWith(`/${MANIFEST}`));
      archives = ['', ...below.map(dirname)];
      for (const link of walked.links) {
        if (!links.has(link)) await leaveLink(erasing, link, [root, ...apart]);
        links.add(link);
      }
      return new Map(walked.files.map((file) => [file, '']));
    },
    erase: async (erasing, files) => {
      const vanished: string[] = [];
      for (const archive of archives) {
        // An archive further down has a manifest and writers of its own.
        const inside = archives.filter((folder) => folder.length > archive.length);
        const prefix = archive === '' ? '' : `${archive}/`;
        const isOwn = (file: string): boolean =>
          file.startsWith(prefix) && !inside.some((folder) => file.startsWith(`${folder}/`));
        const about = { ...options, root: join(root, archive), prefix, held: own !== null };
        vanished.push(...(await eraseArchive(erasing, about, isOwn, files.filter(isOwn))));
      }
      return vanished;
    },
    finish: () => Promise.resolve(),
    release: async () => {
      own?.release();
      await store.close();
    },
  };
}

/** What lies behind a link is somebody else's; unless it is searched at its own place, it is not searched. */
async function leaveLink(
  { name, run, search }: Erasing,
  link: string,
  [root = '', ...apart]: readonly string[],
): Promise<void> {
  const target = await realpath(join(root, link)).catch(() => null);
  const isIn = (folder: string): boolean => target === folder || target?.startsWith(`${folder}/`) === true;
  if (target === null || [root, ...apart].some(isIn)) return;
  const reason = 'a symbolic link is not followed; name its target in erasure.folders';
  run.leave({ store: name, item: search.redact(link), requests: NOBODY, reason });
}

interface ArchiveAbout extends FolderOptions {
  /** Absolute; an archive's own folder, or that of the place. */
  readonly root: string;
  /** Where that lies in the place, with a `/` at its end; empty for the place itself. */
  readonly prefix: string;
  /** We hold the folder of the place, as every command that writes tables into it does. */
  readonly held: boolean;
}

/** @returns the files that went away before they could be looked at */
async function eraseArchive(
  erasing: Erasing,
  about: ArchiveAbout,
  isOwn: (file: string) => boolean,
  paths: readonly string[],
): Promise<readonly string[]> {
  const { root, prefix, log, proof } = about;
  const { name, run } = erasing;
  const writers = await holdWriters(root);
  try {
    const manifest = existsSync(join(root, MANIFEST)) ? new ManifestWriter(root, log, proof) : null;
    const place = new StoredArchive(root, () => openStore(root));
    const listing = new Listing({
      append: manifest && ((line) => manifest.append(line)),
      manifest: () => Promise.resolve({ place, manifest: [MANIFEST] }),
    });
    const erasure = new FileErasure(erasing, filesOf(erasing, about, { listing, alone: writers.none }));
    const earlier = run.recorded.filter(({ store, item }) => store === name && isOwn(item));
    if (earlier.length > 0) await listing.refresh();
    await erasure.finish(earlier);
    for (const path of paths) {
      const file = path.slice(prefix.length);
      // A writer reads what it has sent on when it starts again, and does no more to it than remove it.
      if (writers.isOthers(file) && !file.endsWith(SENT_EXTENSION)) await erasure.lookAt(file);
      else await erasure.erase(file);
    }
    return erasure.vanished.map((file) => prefix + file);
  } finally {
    writers.release();
  }
}

/** @param more.alone no writer of an archive is at work here */
function filesOf(
  { search }: Erasing,
  { root, prefix, held }: ArchiveAbout,
  { listing, alone }: { readonly listing: Listing; readonly alone: boolean },
): ErasableFiles {
  const pathOf = (file: string): string => join(root, file);
  const bytes: Bytes = { chunks: (file) => DISK.chunks(pathOf(file)) };
  const isAbandoned = async (file: string): Promise<boolean> =>
    Date.now() - (await stat(pathOf(file))).mtimeMs >= ABANDONED_AFTER;
  /** What a backfill that is resumed makes anew: it was ended while it wrote it, as it holds the folder while it lives. */
  const isLeftByBackfill = (file: string): boolean => {
    if (!held || prefix !== '' || !/\.(part|tmp)$/.test(file)) return false;
    return file.startsWith('_backfill/') || (!file.includes('/') && existsSync(pathOf('_backfill')));
  };
  const versionOf = async (file: string): Promise<string> => {
    const { ino, mtimeNs, size } = await lstat(pathOf(file), { bigint: true });
    return `${ino} ${mtimeNs} ${size}`;
  };
  // Beside it: the same for the same file, so that what a crash left is overwritten by the next run, and without the
  // extension that readers of the folder look for.
  const temporaryFor = (file: string): string =>
    join(dirname(pathOf(file)), `.erase-${hash('sha256', basename(file), 'hex').slice(0, 16)}.tmp`);
  const remove = async (file: string): Promise<void> => {
    await unlink(pathOf(file));
    await syncFolder(dirname(pathOf(file)));
  };
  return {
    prefix,
    bytes,
    listing,
    versionOf,
    // Writers are kept off.
    pinned: () => bytes,
    temporaryFor,
    replace: async (file, version, after) => {
      if ((await versionOf(file)) !== version) return false;
      if (after === null) {
        await remove(file);
        // The folder of a kept event goes with it once that is empty.
        if (kindOf(file) === 'blob') await rmdir(dirname(pathOf(file))).catch(() => undefined);
        if (search.redact(file) !== file) await removeEmpty(root, search);
      } else {
        await rename(temporaryFor(file), pathOf(file));
        await syncFolder(dirname(pathOf(file)));
      }
      return true;
    },
    purge: () => Promise.resolve([]),
    local: {
      ownerOf: (file) => stat(pathOf(file)),
      // Rows that are not complete yet: they have another name then, and whoever writes them keeps the file open.
      isBeingWritten: async (file) =>
        file.endsWith('.ndjson.part') && !isLeftByBackfill(file) && !(await isAbandoned(file)),
      discard: async (file) => {
        // A compaction has its own temporary files there, and does not run: it holds the lock that is held now.
        const isLeft =
          kindOf(file) === 'temporary'
            ? alone || dirname(file) === OPEN_FOLDER || (await isAbandoned(file))
            : isLeftByBackfill(file);
        if (isLeft) await remove(file);
        return isLeft;
      },
    },
  };
}
