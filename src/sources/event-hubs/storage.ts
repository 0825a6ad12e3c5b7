import { z } from 'zod';
import { NOT_EMPTY, optionalText } from '../../lib/fields.ts';
import { splitConnectionString } from '../../sinks/event-hubs/connection.ts';

/** How to reach a storage account, and as whom. */
export type Storage =
  | { readonly by: 'key'; readonly connectionString: string }
  | { readonly by: 'identity'; readonly accountUrl: string; readonly clientId: string | null };

/** The options about the storage account. */
export const storageFields = {
  connectionString: optionalText(
    'Connection string of the storage account: `DefaultEndpointsProtocol=…;AccountName=…;AccountKey=…`.',
  ),
  accountUrl: optionalText(
    'In place of a connection string, with a managed identity: `https://acme.blob.core.windows.net`.',
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

type Fields = Omit<z.output<z.ZodObject<typeof storageFields>>, 'container'>;

/** Tells the two ways apart; adds an issue when they do not agree. */
export function readStorage(fields: Fields, context: z.RefinementCtx): Storage {
  const { connectionString, accountUrl, managedIdentityClientId: clientId } = fields;
  const wrong = (path: string, message: string): typeof z.NEVER => {
    context.addIssue({ code: 'custom', path: [path], message });
    return z.NEVER;
  };
  if (accountUrl !== null) {
    if (connectionString !== null) return wrong('connectionString', 'must be left out beside accountUrl');
    return { by: 'identity', accountUrl: accountUrl.replace(/\/$/, ''), clientId };
  }
  if (connectionString === null)
    return wrong('connectionString', 'must be set, or accountUrl for a managed identity');
  if (clientId !== null) return wrong('managedIdentityClientId', 'needs accountUrl');
  const parts = splitConnectionString(connectionString);
  const keyed = parts.has('accountname') && parts.has('accountkey');
  const signed = parts.has('blobendpoint') && parts.has('sharedaccesssignature');
  if (!keyed && !signed && !parts.has('usedevelopmentstorage'))
    return wrong('connectionString', 'must hold AccountName and AccountKey');
  return { by: 'key', connectionString };
}
