import { randomBytes } from 'node:crypto';
import type { BigIntStats, Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { type ObjectBody, StorageError, type StorageFault, type StoredObject } from '../../core/storage.ts';
import { errorCode, isMissing, NotFollowed, readPlain } from '../../lib/durable.ts';
import { fillNew, HashedFile, NewFile } from '../../lib/new-file.ts';

/** Ends the names of temporary files and locks, which are no objects. */
const NO_OBJECT = /\.(?:[0-9a-f]{12}|lock)\.tmp$/;

export function temporaryFor(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}.tmp`;
}

export function lockOf(path: string): string {
  return `${path}.lock.tmp`;
}

/** Whether a name in the folder of `path` is that of a temporary file for it. */
export function isTemporaryOf(name: string, path: string): boolean {
  const own = basename(path);
  return name.startsWith(`${own}.`) && /^\.[0-9a-f]{12}\.tmp$/.test(name.slice(own.length));
}

/** A new file has another inode and a later time (`stamp`), so that no version comes back. */
export function objectOf(key: string, stats: BigIntStats): StoredObject {
  const { ino, mtimeNs, size, mtimeMs } = stats;
  return { key, bytes: Number(size), version: `${ino}-${mtimeNs}-${size}`, modifiedAt: Number(mtimeMs) };
}

/** @throws NotFollowed when a level of the key is a link, or its end no file and no folder */
export async function refuseLinks(root: string, key: string): Promise<void> {
  let path = root;
  const levels = key.split('/');
  for (const [index, level] of levels.entries()) {
    path = join(path, level);
    try {
      const stats = await lstat(path);
      if (stats.isSymbolicLink()) throw new NotFollowed(path, 'a symbolic link');
      const isLast = index === levels.length - 1;
      if (isLast && !stats.isFile() && !stats.isDirectory()) throw new NotFollowed(path, 'not a plain file');
    } catch (error) {
      if (isMissing(error)) return;
      throw error;
    }
  }
}

/**
 * Plain files below a folder whose keys begin with the prefix, in order of their keys' bytes. Links are left out.
 * @param folder below the root, with `/` at its end; empty for the root
 */
export async function* listFolder(root: string, prefix: string, folder = ''): AsyncGenerator<StoredObject> {
  for (const [key, isFolder] of await entriesOf(root, folder)) {
    if (isFolder && (key.startsWith(prefix) || prefix.startsWith(key))) yield* listFolder(root, prefix, key);
    if (isFolder || !key.startsWith(prefix)) continue;
    try {
      const stats = await lstat(join(root, key), { bigint: true });
      if (stats.isFile()) yield objectOf(key, stats);
    } catch (error) {
      // Removed since it was listed.
      if (!isMissing(error)) throw error;
    }
  }
}

/** Keys in one folder, in order; the key of a folder ends with `/`. */
async function entriesOf(root: string, folder: string): Promise<[key: string, isFolder: boolean][]> {
  let entries: Dirent[];
  try {
    entries = await readdir(join(root, folder), { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  return entries
    .filter((entry) => entry.isDirectory() || (entry.isFile() && !NO_OBJECT.test(entry.name)))
    .map((entry): [string, boolean] => {
      const isFolder = entry.isDirectory();
      return [`${folder}${entry.name}${isFolder ? '/' : ''}`, isFolder];
    })
    .sort(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
}

/** A microsecond, in seconds: the resolution of file times. */
const TICK = 1e-6;
let latest = 0;

/** Writes a body under a temporary name, synced. @throws StorageError when the body's file was changed */
export async function writeTemporary(path: string, body: ObjectBody, signal?: AbortSignal): Promise<void> {
  if ('bytes' in body) {
    await fillNew(NewFile.create(path), async (file) => {
      await file.write(body.bytes);
      await stamp(file);
    });
    return;
  }
  await fillNew(HashedFile.create(path), async (file) => {
    for await (const chunk of readPlain(body.file)) {
      signal?.throwIfAborted();
      await file.write(chunk);
    }
    const { bytes, sha256 } = file.facts();
    if (bytes !== body.size || sha256 !== body.sha256)
      throw new StorageError('invalid', `${body.file} was changed before it was copied`);
    await stamp(file);
  });
}

/** Sets a unique time. The system's own times stand still for milliseconds, in which a file can be replaced twice. */
async function stamp(file: NewFile): Promise<void> {
  const now = (performance.timeOrigin + performance.now()) / 1000;
  latest = Math.max(now, latest + TICK);
  await file.handle.utimes(latest, latest);
}

const FAULTS: Readonly<Record<string, StorageFault>> = {
  ENOENT: 'missing',
  ENOTDIR: 'invalid',
  EISDIR: 'invalid',
  ENAMETOOLONG: 'invalid',
  EINVAL: 'invalid',
  EFBIG: 'invalid',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
};

/** A full or failing disk is `unreachable`: the same call can succeed later. */
export function faultOf(error: unknown, path: string): StorageError {
  const fault = error instanceof NotFollowed ? 'invalid' : (FAULTS[errorCode(error)] ?? 'unreachable');
  return new StorageError(fault, `${path}: ${messageOf(error)}`, { cause: error });
}
