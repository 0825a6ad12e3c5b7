import type { CheckpointStore } from '@azure/event-hubs';
import { messageOf } from '../../core/errors.ts';
import { loadCredential } from '../../vendors/event-hubs/connection.ts';
import type { BlobCheckpoints } from './config.ts';

/** Retries are the reader's: it begins anew. */
const ONCE = 1;

/**
 * The checkpoints and claims of a hub in blobs of a container, laid out as the SDKs of every language do.
 * @param timeout milliseconds one request may take
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

/** The same store, whose requests end in time (the SDKs set no limit), and whose errors say what they are about. */
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

/** The line that says why: around it stand the SDK's own words and the ids of the request. */
function reasonOf(error: unknown): string {
  const lines = messageOf(error).split('\n');
  const reason = lines.find((line) => line.startsWith(PREFIX))?.slice(PREFIX.length) ?? lines[0] ?? '';
  // A signature is part of an address that may be quoted.
  return reason.replaceAll(/([?&]sig=)[^&\s"]*/g, '$1[redacted]');
}

const PREFIX = 'RestError: ';
