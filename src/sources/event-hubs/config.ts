import { z } from 'zod';
import type { SourceDescription } from '../../core/source.ts';
import { isRecord } from '../../lib/parsed.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { choice, duration, NOT_EMPTY, text, optionalText } from '../../lib/fields.ts';
import {
  connectionFields,
  packagesFor,
  readConnection,
  refuse,
  packagesForAccess,
  readAccess,
  splitConnectionString,
  type Connection,
} from '../../vendors/event-hubs/connection.ts';

/** Options of the storage account. */
const storageFields = {
  connectionString: optionalText(
    'Connection string of the storage account: `DefaultEndpointsProtocol=…;AccountName=…;AccountKey=…`.',
  ),
  accountUrl: optionalText(
    'Instead of a connection string, with a managed identity: `https://acme.blob.core.windows.net`.',
    { pattern: '^https://[^\\s/?#]+/?$', hint: 'must be a URL such as https://acme.blob.core.windows.net' },
  ),
  managedIdentityClientId: optionalText('Client id of a user-assigned managed identity.', NOT_EMPTY),
  container: z
    .string()
    .regex(/^(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/, 'must be the name of a blob container')
    .describe(
      'Blob container for claims and checkpoints, in the layout of the SDKs. It must exist; only the blobs in it are created.',
    ),
};

/** Packages for the storage. @param options as written */
function packagesForStorage({ accountUrl }: Readonly<Record<string, unknown>>): string[] {
  return ['@azure/storage-blob', '@azure/eventhubs-checkpointstore-blob', ...packagesForAccess(accountUrl)];
}

type Fields = Omit<z.output<z.ZodObject<typeof storageFields>>, 'container'>;

/** How to reach the storage account; adds an issue when options do not agree. */
function readStorage({ accountUrl, ...fields }: Fields, context: z.RefinementCtx): Connection {
  const storage = readAccess(fields, { accountUrl: accountUrl?.replace(/\/$/, '') ?? null }, context);
  if (storage?.by !== 'key') return storage ?? z.NEVER;
  const parts = splitConnectionString(storage.connectionString);
  const keyed = parts.has('accountname') && parts.has('accountkey');
  const signed = parts.has('blobendpoint') && parts.has('sharedaccesssignature');
  if (keyed || signed || parts.has('usedevelopmentstorage')) return storage;
  return refuse(context, 'connectionString', 'must hold AccountName and AccountKey');
}

const MINIMUM_TIMEOUT = 100;
const MINIMUM_CLAIM = 1000;

const blobStorage = z
  .strictObject({
    type: z.literal('blob-storage'),
    ...storageFields,
    takeOverAfter: duration(
      '1m',
      'Other workers take over the partitions of a worker that has been silent for this long; each one checks at a sixth of this interval.',
      { min: MINIMUM_CLAIM },
    ),
  })
  .transform(({ type, takeOverAfter, container, ...fields }, context) => {
    return { type, storage: readStorage(fields, context), container, takeOverAfter };
  });

const checkpointPlace = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('journal') }),
  blobStorage,
]);

const schema = z
  .strictObject({
    ...connectionFields,
    consumerGroup: text(
      '$Default',
      'Use a separate group for this consumer: consumers in the same group share the messages.',
      NOT_EMPTY,
    ),
    start: choice(
      ['earliest', 'latest'],
      'earliest',
      'Where to begin in a partition without a checkpoint: at the oldest event the hub still holds, or at the next new one.',
    ),
    checkpoints: z
      .preprocess(asMapping, checkpointPlace)
      .prefault('journal')
      .describe(
        '`journal`: one worker reads all partitions. A mapping with `type: blob-storage`: several workers share them.',
      ),
    timeout: duration('15s', 'How long one operation may take before the connection is considered lost.', {
      min: MINIMUM_TIMEOUT,
    }),
  })
  .transform(({ consumerGroup, start, checkpoints, timeout, ...fields }, context) => {
    const { connection, hub } = readConnection(fields, context);
    if (hub === null) return refuse(context, 'hub', 'must name the Event Hub to read');
    return { connection, hub, consumerGroup, start, checkpoints, timeout };
  });

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** Parsed options of the source; times in milliseconds. */
export type EventHubsSourceOptions = z.output<typeof schema>;

/** Parsed options of checkpoints that several workers share; times in milliseconds. */
export type BlobCheckpoints = z.output<typeof blobStorage>;

/** `journal` is short for `{ type: journal }`. */
function asMapping(value: unknown): unknown {
  return typeof value === 'string' ? { type: value } : value;
}

export function describe(written: Readonly<Record<string, unknown>>): SourceDescription {
  const { checkpoints } = written;
  const packages = packagesFor(written);
  if (isRecord(checkpoints) && checkpoints['type'] !== 'journal')
    return { packages: [...new Set([...packages, ...packagesForStorage(checkpoints)])] };
  const reason = 'it keeps its checkpoints in the journal; use checkpoints of type blob-storage';
  return { packages, needsJournal: { option: 'checkpoints', reason } };
}
