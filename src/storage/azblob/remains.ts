import type { BlobItem, ContainerClient } from '@azure/storage-blob';
import { StorageError } from '../../core/storage.ts';
import type { Remains } from '../driver.ts';

/** Old versions and snapshots of a blob, and soft-deleted ones, which only the service removes. */
export async function remainsOf(
  container: ContainerClient,
  key: string,
  abortSignal: AbortSignal,
): Promise<Remains[]> {
  const found: Remains[] = [];
  const all = { includeSnapshots: true, includeVersions: true, includeDeleted: true };
  for await (const item of container.listBlobsFlat({ prefix: key, ...all, abortSignal })) {
    // Keys come in order; the later ones only begin with this key.
    if (item.name !== key) break;
    const remains = remainsIn(container, item);
    if (remains !== null) found.push(remains);
  }
  return found;
}

function remainsIn(container: ContainerClient, item: BlobItem): Remains | null {
  const { name: key, deleted, snapshot, versionId, isCurrentVersion, properties } = item;
  const which = snapshot ? `snapshot ${snapshot}` : versionId ? `version ${versionId}` : 'blob';
  if (deleted) {
    const days = properties.remainingRetentionDays;
    const until = days === undefined ? '' : `, kept for ${days} more days`;
    const text = `soft-deleted${until}; turn soft delete off to have it removed at once`;
    const why = new StorageError('denied', text);
    return { name: which, remove: () => Promise.reject(why) };
  }
  const blob = container.getBlobClient(key);
  const copy = snapshot
    ? blob.withSnapshot(snapshot)
    : isCurrentVersion !== true && versionId
      ? blob.withVersion(versionId)
      : null;
  if (copy === null) return null;
  return {
    name: which,
    remove: async (abortSignal) => void (await copy.deleteIfExists({ abortSignal })),
  };
}
