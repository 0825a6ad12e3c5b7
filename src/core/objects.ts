import { randomUUID } from 'node:crypto';
import { type ObjectStore, StorageError } from './storage.ts';

/** All of an object. @throws StorageError */
export async function readWhole(store: ObjectStore, key: string, signal?: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of store.get(key, signal === undefined ? {} : { signal })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/**
 * Removes objects, and what the store keeps of them beside their present state.
 * @returns what it keeps all the same, and why
 */
export async function removeForGood(
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
 * What the store's clock shows, in milliseconds since the epoch: how old an object is cannot be told by this machine's. Takes the
 * rights to write and remove.
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
    await removeForGood(store, [key], signal);
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof StorageError && error.fault === 'missing';
}

/** For what others may remove while it is read. @throws any other error */
export function nullIfMissing(error: unknown): null {
  if (!isMissing(error)) throw error;
  return null;
}
