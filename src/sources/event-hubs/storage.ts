import { z } from 'zod';
import { NOT_EMPTY, optionalText } from '../../lib/fields.ts';
import {
  packagesForAccess,
  readAccess,
  refuse,
  splitConnectionString,
  type Connection,
} from '../../sinks/event-hubs/connection.ts';

/** The options about the storage account. */
export const storageFields = {
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

/** Packages that the storage needs, by the options as written. */
export function packagesForStorage({ accountUrl }: Readonly<Record<string, unknown>>): string[] {
  return ['@azure/storage-blob', '@azure/eventhubs-checkpointstore-blob', ...packagesForAccess(accountUrl)];
}

type Fields = Omit<z.output<z.ZodObject<typeof storageFields>>, 'container'>;

/** Tells the two ways apart; adds an issue when they do not agree. */
export function readStorage({ accountUrl, ...fields }: Fields, context: z.RefinementCtx): Connection {
  const storage = readAccess(fields, { accountUrl: accountUrl?.replace(/\/$/, '') ?? null }, context);
  if (storage?.by !== 'key') return storage ?? z.NEVER;
  const parts = splitConnectionString(storage.connectionString);
  const keyed = parts.has('accountname') && parts.has('accountkey');
  const signed = parts.has('blobendpoint') && parts.has('sharedaccesssignature');
  if (keyed || signed || parts.has('usedevelopmentstorage')) return storage;
  return refuse(context, 'connectionString', 'must hold AccountName and AccountKey');
}
