import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, realpath, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ManifestWriter } from '../../archive/manifest-writer.ts';
import { DISK } from '../../archive/place.ts';
import { StoredArchive } from '../../archive/stored-archive.ts';
import { MANIFEST, OPEN_FOLDER, SENT_EXTENSION } from '../../core/archive.ts';
import type { OpenProof } from '../../core/proof.ts';
import type { SinkLog } from '../../core/sink.ts';
import { errorCode, isMissing, syncFolder } from '../../lib/durable.ts';
import { FolderRefused } from '../../lib/folder-refused.ts';
import { walkFolder } from '../../lib/walk-folder.ts';
import { WorkFolder } from '../../lib/work-folder.ts';
import { openStore } from '../../storage/open.ts';
import { removeEmpty } from './delta-partition.ts';
import { type ErasableFiles, FileErasure } from './file-erasure.ts';
import { kindOf } from './file-kinds.ts';
import { Listing } from './listing.ts';
import type { OpenedPlace, OpenPlace } from './place-erasure.ts';
import type { PlaceRun } from './place-run.ts';
import { holdWriters, type Writers } from './writers.ts';

/** Milliseconds without a write after which an unfinished file has lost its writer. */
const ABANDONED_AFTER = 600_000;

export interface FolderOptions {
  readonly path: string;
  /** Folders below it that belong to other places, absolute. */
  readonly exclude: readonly string[];
  readonly log: SinkLog;
  /** Signs lines of manifests. */
  readonly proof?: OpenProof;
  /** Why what was written here is missing; null when it is there, or need not be. */
  readonly missing?: (() => Missing | null) | undefined;
}

export interface Missing {
  readonly error: Error;
  /** Whether requests wait for it; otherwise their receipts name it. */
  readonly waits: boolean;
}

/** Opens a folder of this machine, with the archives in it. */
export function openFolder(options: FolderOptions): OpenPlace {
  return async (place) => {
    const missing = options.missing?.();
    if (missing?.waits === true) place.leaveFailed('', missing.error);
    else if (missing) place.leave(options.path, [], missing.error.message);
    const root = await realpath(options.path).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT') throw error;
      return null;
    });
    if (root === null) return null;
    try {
      return await opened(place, root, options, await takeFolder(root));
    } catch (error) {
      if (!(error instanceof FolderRefused)) throw error;
      place.leaveFailed('', error);
      return null;
    }
  };
}

/**
 * Locks the folder: a command that writes here, such as a backfill, could restore what is erased.
 * @returns null for a folder that cannot be written: it is searched without a lock
 */
function takeFolder(root: string): Promise<WorkFolder | null> {
  return WorkFolder.take(root).catch((error: unknown) => {
    if (error instanceof FolderRefused) throw error;
    return null;
  });
}

async function opened(
  place: PlaceRun,
  root: string,
  options: FolderOptions,
  lock: WorkFolder | null,
): Promise<OpenedPlace> {
  const others = await Promise.all(options.exclude.map((path) => realpath(path).catch(() => path)));
  const store = await openStore(root);
  const links = new Set<string>();
  /** Folders of archives, relative, and the place itself. */
  let archives: readonly string[] = [];
  return {
    store,
    word: 'files',
    leastPasses: 1,
    list: async () => {
      const walked = await walkFolder(root, { exclude: others });
      archives = ['', ...walked.files.filter((file) => file.endsWith(`/${MANIFEST}`)).map(dirname)];
      for (const link of walked.links)
        if (!links.has(link)) await leaveLink(place, join(root, link), link, [root, ...others]);
      for (const link of walked.links) links.add(link);
      return new Map(walked.files.map((file) => [file, '']));
    },
    erase: async (files) => {
      const vanished: string[] = [];
      for (const archive of archives) {
        // An archive further down has a manifest and writers of its own.
        const inside = archives.filter((folder) => folder.length > archive.length);
        const prefix = archive === '' ? '' : `${archive}/`;
        const isOwn = (file: string): boolean =>
          file.startsWith(prefix) && !inside.some((folder) => file.startsWith(`${folder}/`));
        const about = { ...options, root: join(root, archive), prefix, isLocked: lock !== null, isOwn };
        vanished.push(...(await eraseArchive(place, about, files.filter(isOwn))));
      }
      return vanished;
    },
    finish: () => Promise.resolve(),
    close: async () => {
      lock?.release();
      await store.close();
    },
  };
}

/** A link is not followed; unless its target is searched as a place, or missing, it stands on the receipts. */
async function leaveLink(
  place: PlaceRun,
  path: string,
  link: string,
  searched: readonly string[],
): Promise<void> {
  // Not known, such as without rights to look: among no places that are searched.
  const target = await realpath(path).catch((error: unknown) => (isMissing(error) ? null : ''));
  if (target === null) return;
  if (searched.some((folder) => target === folder || target.startsWith(`${folder}/`))) return;
  place.leave(link, [], 'a symbolic link is not followed; name its target in erasure.folders');
}

/** An archive in the folder, or the folder itself. */
interface ArchiveAbout extends FolderOptions {
  /** Absolute. */
  readonly root: string;
  /** Its path in the place, with a `/` at its end; empty for the place itself. */
  readonly prefix: string;
  /** True when the place is locked against commands that write tables into it. */
  readonly isLocked: boolean;
  /** Whether a file of the place is one of this archive. */
  readonly isOwn: (file: string) => boolean;
}

/** @returns the files that were removed before they could be looked at */
async function eraseArchive(
  place: PlaceRun,
  about: ArchiveAbout,
  paths: readonly string[],
): Promise<readonly string[]> {
  const { root, prefix, isOwn, log, proof } = about;
  const writers = await holdWriters(root);
  try {
    const manifest = existsSync(join(root, MANIFEST)) ? new ManifestWriter(root, log, proof) : null;
    const archive = new StoredArchive(root, () => openStore(root));
    const listing = new Listing({
      append: manifest && ((line) => manifest.append(line)),
      manifest: () => Promise.resolve({ place: archive, manifest: [MANIFEST] }),
    });
    const erasure = new FileErasure(place, filesOf(place, about, listing, writers));
    const earlier = place.run.recorded.filter(({ store, item }) => store === place.name && isOwn(item));
    if (earlier.length > 0) await listing.refresh();
    await erasure.finish(earlier);
    for (const path of paths) {
      const file = path.slice(prefix.length);
      // A file that was sent on is only read by its writer, or removed.
      if (writers.isOthers(file) && !file.endsWith(SENT_EXTENSION)) await erasure.lookAt(file);
      else await erasure.erase(file);
    }
    return erasure.vanished.map((file) => prefix + file);
  } finally {
    writers.release();
  }
}

function filesOf(
  { search }: PlaceRun,
  { root, prefix, isLocked }: ArchiveAbout,
  listing: Listing,
  writers: Writers,
): ErasableFiles {
  const pathOf = (file: string): string => join(root, file);
  const bytes = { chunks: (file: string) => DISK.chunks(pathOf(file)) };
  const isAbandoned = async (file: string): Promise<boolean> =>
    Date.now() - (await stat(pathOf(file))).mtimeMs >= ABANDONED_AFTER;
  /** A living backfill locks the folder; one that is resumed writes these files again. */
  const isLeftByBackfill = (file: string): boolean => {
    if (!isLocked || prefix !== '' || !/\.(part|tmp)$/.test(file)) return false;
    return file.startsWith('_backfill/') || (!file.includes('/') && existsSync(pathOf('_backfill')));
  };
  const versionOf = async (file: string): Promise<string> => {
    const { ino, mtimeNs, size } = await lstat(pathOf(file), { bigint: true });
    return `${ino} ${mtimeNs} ${size}`;
  };
  // Beside the file, always the same name, so that the next run overwrites what a crash left; no reader looks for `.tmp`.
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
    kindOf,
    versionOf,
    // Writers are kept out.
    pinned: () => bytes,
    temporaryFor,
    replace: async (file, version, after) => {
      if ((await versionOf(file)) !== version) return false;
      if (after === null) {
        await remove(file);
        if (kindOf(file) === 'blob') await rmdir(dirname(pathOf(file))).catch(() => undefined);
        if (search.redact(file) !== file) await removeEmpty(root, search);
      } else {
        await rename(temporaryFor(file), pathOf(file));
        await syncFolder(dirname(pathOf(file)));
      }
      return true;
    },
    purge: () => Promise.resolve([]),
    ownerOf: (file) => stat(pathOf(file)),
    isBeingWritten: async (file) =>
      file.endsWith('.ndjson.part') && !isLeftByBackfill(file) && !(await isAbandoned(file)),
    discard: async (file) => {
      // The temporary files of a compaction are in OPEN_FOLDER, and its lock is held now.
      const isLeft =
        kindOf(file) === 'temporary'
          ? writers.none || dirname(file) === OPEN_FOLDER || (await isAbandoned(file))
          : isLeftByBackfill(file);
      if (isLeft) await remove(file);
      return isLeft;
    },
  };
}
