import type { TokenCredential } from '@azure/identity';
import { z } from 'zod';
import { NOT_EMPTY, optionalText } from '../../lib/fields.ts';

/** How to reach a namespace or a storage account, and sign in. `address` is the namespace's host, or the account's URL. */
export type Connection =
  | { readonly by: 'key'; readonly connectionString: string }
  | { readonly by: 'identity'; readonly address: string; readonly clientId: string | null };

/** Options of the connection, the same for a sink and a source. */
export const connectionFields = {
  connectionString: optionalText(
    'Connection string of the namespace: `Endpoint=sb://…;SharedAccessKeyName=…;SharedAccessKey=…`. An `EntityPath` names the default hub. Needed without `fullyQualifiedNamespace`.',
  ),
  fullyQualifiedNamespace: optionalText(
    'Instead of a connection string: uses a managed identity (or any other that DefaultAzureCredential finds).',
    { pattern: '^[A-Za-z0-9.-]+$', hint: 'must be a host such as acme.servicebus.windows.net' },
  ),
  managedIdentityClientId: optionalText('Client id of a user-assigned managed identity.', NOT_EMPTY),
  hub: optionalText('The default Event Hub, when neither the route nor the connection string names one.', {
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,255}$',
    hint: 'must be the name of an Event Hub',
  }),
};

/** Packages for a connection. @param options as written */
export function packagesFor({ fullyQualifiedNamespace }: Readonly<Record<string, unknown>>): string[] {
  return ['@azure/event-hubs', ...packagesForAccess(fullyQualifiedNamespace)];
}

/** Packages for signing in. @param address as written; set where there is no connection string */
export function packagesForAccess(address: unknown): string[] {
  return typeof address === 'string' ? ['@azure/identity'] : [];
}

type Fields = z.output<z.ZodObject<typeof connectionFields>>;

/** The connection, and the hub, which the connection string can name; adds an issue when options do not agree. */
export function readConnection(
  { fullyQualifiedNamespace, ...fields }: Fields,
  context: z.RefinementCtx,
): { connection: Connection; hub: string | null } {
  const connection = readAccess(fields, { fullyQualifiedNamespace }, context);
  if (connection === null) return z.NEVER;
  if (connection.by === 'identity') return { connection, hub: fields.hub };
  const { by, connectionString } = connection;
  const parts = splitConnectionString(connectionString);
  const isSigned = parts.has('endpoint') && parts.has('sharedaccesssignature');
  const isKeyed = ['endpoint', 'sharedaccesskeyname', 'sharedaccesskey'].every((name) => parts.has(name));
  if (!isKeyed && !isSigned)
    return refuse(context, 'connectionString', 'must hold Endpoint, SharedAccessKeyName and SharedAccessKey');
  const entity = parts.get('entitypath') ?? null;
  const hub = fields.hub ?? entity;
  if (entity !== null && hub !== entity)
    return refuse(
      context,
      'hub',
      `must be the EntityPath of the connection string, ${JSON.stringify(entity)}`,
    );
  const namespaceWide = connectionString.split(';').filter((part) => !/^\s*EntityPath=/i.test(part));
  return { connection: { by, connectionString: namespaceWide.join(';') }, hub };
}

/** Null when the options do not agree, which adds an issue. @param named the option with the address */
export function readAccess(
  {
    connectionString,
    managedIdentityClientId: clientId,
  }: Pick<Fields, 'connectionString' | 'managedIdentityClientId'>,
  named: Readonly<Record<string, string | null>>,
  context: z.RefinementCtx,
): Connection | null {
  const [[option, address] = ['', null]] = Object.entries(named);
  if (address !== null && connectionString === null) return { by: 'identity', address, clientId };
  if (address !== null) refuse(context, 'connectionString', `must be left out beside ${option}`);
  else if (connectionString === null)
    refuse(context, 'connectionString', `must be set, or ${option} for a managed identity`);
  else if (clientId !== null) refuse(context, 'managedIdentityClientId', `needs ${option}`);
  else return { by: 'key', connectionString };
  return null;
}

/** Adds an issue. */
export function refuse(context: z.RefinementCtx, option: string, message: string): typeof z.NEVER {
  context.addIssue({ code: 'custom', path: [option], message });
  return z.NEVER;
}

/** Host of the namespace, for keys and error messages. */
export function hostOf(connection: Connection): string {
  if (connection.by === 'identity') return connection.address;
  const endpoint = splitConnectionString(connection.connectionString).get('endpoint') ?? '';
  return endpoint.replace(/^[a-z]+:\/\//i, '').replace(/\/$/, '');
}

/** Loads the package only when a config needs it: it is large. */
export async function loadCredential(clientId: string | null): Promise<TokenCredential> {
  const { DefaultAzureCredential } = await import('@azure/identity');
  return new DefaultAzureCredential(clientId === null ? {} : { managedIdentityClientId: clientId });
}

/** Names in lower case; values can contain `=`. */
export function splitConnectionString(text: string): Map<string, string> {
  const parts = text.split(';').flatMap((part): [string, string][] => {
    const equals = part.indexOf('=');
    const value = part.slice(equals + 1).trim();
    return equals === -1 || value === '' ? [] : [[part.slice(0, equals).trim().toLowerCase(), value]];
  });
  return new Map(parts);
}
