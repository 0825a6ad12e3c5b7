import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { StoredObject } from '../../core/storage.ts';
import { isMissing, NotFollowed } from '../../lib/durable.ts';

/** Ends the names of what is no object: files in the making, and locks. */
const OWN = /\.(?:[0-9a-f]{12}|lock)\.tmp$/;

export function isOwnName(name: string): boolean {
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
