import type { BlobItem, ContainerClient } from '@azure/storage-blob';
import { StorageError } from '../../core/storage.ts';
import type { Remains } from '../driver.ts';

/** Old versions and snapshots of a blob, and soft-deleted ones, which only time removes. */
export async function remainsOf(
  container: ContainerClient,
  key: string,
  abortSignal: AbortSignal,
): Promise<Remains[]> {
  const found: Remains[] = [];
  const options = {
    prefix: key,
    includeSnapshots: true,
    includeVersions: true,
    includeDeleted: true,
    abortSignal,
  };
  for await (const item of container.listBlobsFlat(options)) {
    // Keys come in order; those after it only begin like it.
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
    const why = new StorageError(
      'denied',
      `soft-deleted${until}; turn soft delete off to have it removed at once`,
    );
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
