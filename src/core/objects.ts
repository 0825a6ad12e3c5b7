import { randomUUID } from 'node:crypto';
import { type ObjectStore, StorageError } from './storage.ts';

/** All of an object. @throws StorageError */
export async function readWhole(store: ObjectStore, key: string, signal?: AbortSignal): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(store.get(key, signal === undefined ? {} : { signal })));
}

/**
 * Deletes objects permanently, with their old versions.
 * @returns what the store keeps all the same, and why
 */
export async function removePermanently(
  store: ObjectStore,
  keys: readonly string[],
  signal?: AbortSignal,
): Promise<string[]> {
  const left: string[] = [];
  for (const key of keys) {
    await store.delete(key, undefined, signal);
    const { kept } = await store.purge(key, signal);
    for (const reason of kept) left.push(`${key}: ${reason}`);
  }
  return left;
}

/**
 * The time of the store's clock, milliseconds since the epoch: the age of an object must not be computed by another clock. Needs
 * the rights to write and remove.
 * @throws StorageError
 */
export async function timeAt(store: ObjectStore, signal?: AbortSignal): Promise<number> {
  const key = `_clock-${randomUUID()}`;
  try {
    await store.putIfAbsent(key, { bytes: Buffer.from('\n') }, signal);
    const made = await store.head(key, signal);
    if (made === null) throw new StorageError('missing', `${store.url}/${key} was removed at once`);
    return made.modifiedAt;
  } finally {
    await removePermanently(store, [key], signal);
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof StorageError && error.fault === 'missing';
}

/** For objects that others may remove while they are read. @throws any other error */
export function nullIfMissing(error: unknown): null {
  if (!isMissing(error)) throw error;
  return null;
}
