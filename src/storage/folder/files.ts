import { randomBytes } from 'node:crypto';
import type { BigIntStats, Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type StoredObject, type ObjectBody, StorageError, type StorageFault } from '../../core/storage.ts';
import { isMissing, NotFollowed, readPlain, errorCode } from '../../lib/durable.ts';
import { fillNew, HashedFile, NewFile } from '../../lib/new-file.ts';
import { messageOf } from '../../core/errors.ts';

/** Ends the names of what is no object: files in the making, and locks. */
const OWN = /\.(?:[0-9a-f]{12}|lock)\.tmp$/;

function isOwnName(name: string): boolean {
  return OWN.test(name);
}

export function temporaryFor(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}.tmp`;
}

export function lockOf(path: string): string {
  return `${path}.lock.tmp`;
}

/** Whether a name in the folder of `path` is that of a file in the making which would have become it. */
export function isRemains(name: string, path: string): boolean {
  const own = basename(path);
  return name.startsWith(`${own}.`) && /^\.[0-9a-f]{12}\.tmp$/.test(name.slice(own.length));
}

/** A file replaces another with an inode of its own and a later time (write.ts), so that no version comes back. */
export function objectOf(key: string, stats: BigIntStats): StoredObject {
  const { ino, mtimeNs, size, mtimeMs } = stats;
  return { key, bytes: Number(size), version: `${ino}-${mtimeNs}-${size}`, modifiedAt: Number(mtimeMs) };
}

/** @throws NotFollowed when a level of the key is a link, or anything but a folder or, at its end, a file */
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

/** Plain files below a folder whose keys begin with the prefix, in order of their keys' bytes. Links are left out. */
export async function* listFolder(root: string, prefix: string): AsyncGenerator<StoredObject> {
  yield* below(root, '', prefix);
}

async function* below(root: string, folder: string, prefix: string): AsyncGenerator<StoredObject> {
  for (const [key, isFolder] of await entriesOf(root, folder)) {
    // A folder is on the way to the prefix, or inside it.
    if (isFolder && (key.startsWith(prefix) || prefix.startsWith(key))) yield* below(root, key, prefix);
    if (isFolder || !key.startsWith(prefix)) continue;
    try {
      const stats = await lstat(join(root, key), { bigint: true });
      if (stats.isFile()) yield objectOf(key, stats);
    } catch (error) {
      // Removed meanwhile.
      if (!isMissing(error)) throw error;
    }
  }
}

/** Keys in one folder, in order; that of a folder ends with `/`, as it does in the keys of its files. */
async function entriesOf(root: string, folder: string): Promise<[key: string, isFolder: boolean][]> {
  let entries: Dirent[];
  try {
    entries = await readdir(join(root, folder), { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  return entries
    .filter((entry) => entry.isDirectory() || (entry.isFile() && !isOwnName(entry.name)))
    .map((entry): [string, boolean] => [
      `${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`,
      entry.isDirectory(),
    ])
    .sort(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
}

/** A microsecond, in seconds: what times of files can be told apart by. */
const TICK = 1e-6;
let latest = 0;

/** Writes a body under a temporary name; it is on disk once this resolves. @throws StorageError when a file was changed */
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

/** The system's own times stand still for milliseconds, in which a file can be replaced twice. */
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

/** A full or failing disk is a matter of time, or of somebody's doing; the same call can succeed later. */
export function faultOf(error: unknown, path: string): StorageError {
  const fault = error instanceof NotFollowed ? 'invalid' : (FAULTS[errorCode(error)] ?? 'unreachable');
  return new StorageError(fault, `${path}: ${messageOf(error)}`, { cause: error });
}
