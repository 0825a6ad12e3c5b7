import { closeSync, constants, lstatSync, openSync, unlinkSync } from 'node:fs';
import { clearOwner, writeOwner } from '../../../src/lib/lock-owner.ts';

// Stands in for lib/file-lock.ts: nobody else is there, so a lock is its file and a note that it is held. The lock of the
// system, by SQLite, is half of the databases that a recovery would open.

export interface FileLock {
  release(file?: 'keep' | 'remove'): void;
}

const held = new Set<string>();

export function tryLock(path: string): FileLock | null {
  if (held.has(path)) return null;
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() === false) throw new Error(`${path} is not a plain file`);
  if (stats === undefined)
    closeSync(openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600));
  held.add(path);
  return {
    release: (file) => {
      if (held.delete(path) && file === 'remove') unlinkSync(path);
    },
  };
}

export function tryOwn(path: string): FileLock | null {
  const lock = tryLock(path);
  if (lock !== null) writeOwner(path);
  return lock === null
    ? null
    : {
        release: (file) => {
          if (held.has(path)) clearOwner(path);
          lock.release(file);
        },
      };
}

export async function own(path: string, refusal: (owner: string) => Error): Promise<FileLock> {
  const lock = tryOwn(path);
  if (lock === null) throw refusal('another part of this process');
  return Promise.resolve(lock);
}

export async function lockInTurn(path: string): Promise<FileLock> {
  for (;;) {
    const lock = tryLock(path);
    if (lock !== null) return lock;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
