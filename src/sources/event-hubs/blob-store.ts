import type { CheckpointStore } from '@azure/event-hubs';
import { messageOf } from '../../core/errors.ts';
import { loadCredential } from '../../vendors/event-hubs/connection.ts';
import type { BlobCheckpoints } from './config.ts';

/** The source retries, by opening again. */
const ONCE = 1;

/**
 * The checkpoints and claims of a hub in blobs of a container, in the layout of the SDKs of all languages.
 * @param timeout of one request, milliseconds
 */
export async function openBlobStore(
  { storage, container: name }: BlobCheckpoints,
  timeout: number,
): Promise<CheckpointStore> {
  const [{ ContainerClient }, { BlobCheckpointStore }] = await Promise.all([
    import('@azure/storage-blob'),
    import('@azure/eventhubs-checkpointstore-blob'),
  ]);
  const options = { retryOptions: { maxTries: ONCE } };
  const container =
    storage.by === 'key'
      ? new ContainerClient(storage.connectionString, name, options)
      : new ContainerClient(`${storage.address}/${name}`, await loadCredential(storage.clientId), options);
  return bounded(new BlobCheckpointStore(container), name, timeout);
}

/** The same store with a time limit, which the SDKs do not have, and with errors that name the container. */
function bounded(store: CheckpointStore, container: string, timeout: number): CheckpointStore {
  const asking = async <T>(ask: (options: { abortSignal: AbortSignal }) => Promise<T>): Promise<T> => {
    const abortSignal = AbortSignal.timeout(timeout);
    try {
      return await ask({ abortSignal });
    } catch (error) {
      const reason = abortSignal.aborted ? `no answer in ${timeout} ms` : reasonOf(error);
      throw new Error(`checkpoints in container ${container}: ${reason}`, { cause: error });
    }
  };
  return {
    listOwnership: (host, hub, group) => asking((options) => store.listOwnership(host, hub, group, options)),
    claimOwnership: (wanted) => asking((options) => store.claimOwnership(wanted, options)),
    updateCheckpoint: (checkpoint) => asking((options) => store.updateCheckpoint(checkpoint, options)),
    listCheckpoints: (host, hub, group) =>
      asking((options) => store.listCheckpoints(host, hub, group, options)),
  };
}

/** The line with the reason: the other lines are of the SDK, with the ids of the request. */
function reasonOf(error: unknown): string {
  const lines = messageOf(error).split('\n');
  const reason = lines.find((line) => line.startsWith(PREFIX))?.slice(PREFIX.length) ?? lines[0] ?? '';
  // A quoted address can contain a signature.
  return reason.replaceAll(/([?&]sig=)[^&\s"]*/g, '$1[redacted]');
}

const PREFIX = 'RestError: ';
