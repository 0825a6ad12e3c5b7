import {
  AnonymousCredential,
  ContainerClient,
  newPipeline,
  type StoragePipelineOptions,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { MillraceError } from '../../core/errors.ts';
import type { StorageSettings } from '../fields.ts';
import type { Environment } from '../driver.ts';

/** remote-store.ts retries, and has the time limit. */
const OPTIONS: StoragePipelineOptions = { retryOptions: { maxTries: 1 } };

/** Uses the account of the config, else the variables of Azure's own tools. @throws MillraceError usage */
export async function clientOf(
  container: string,
  settings: StorageSettings['azblob'],
  env: Environment,
): Promise<ContainerClient> {
  const isNamed = settings.account !== null || settings.endpoint !== null;
  const connectionString =
    settings.connectionString ?? (isNamed ? undefined : env['AZURE_STORAGE_CONNECTION_STRING'] || undefined);
  if (connectionString !== undefined) return clientBy(connectionString, container);
  const account = settings.account ?? (isNamed ? null : env['AZURE_STORAGE_ACCOUNT'] || null);
  const key = settings.accountKey ?? (isNamed ? null : env['AZURE_STORAGE_KEY'] || null);
  if (account === null && settings.endpoint === null)
    throw new MillraceError(
      'usage',
      'azblob:// needs to know the storage account: set storage.azblob.account, or AZURE_STORAGE_CONNECTION_STRING',
    );
  const address = (settings.endpoint ?? `https://${account}.blob.core.windows.net`).replace(/\/$/, '');
  const url = `${address}/${container}`;
  if (settings.sasToken !== null) {
    const signed = `${url}?${settings.sasToken.replace(/^\?/, '')}`;
    return new ContainerClient(signed, newPipeline(new AnonymousCredential(), OPTIONS));
  }
  if (key !== null)
    return new ContainerClient(
      url,
      new StorageSharedKeyCredential(account ?? accountIn(address), key),
      OPTIONS,
    );
  const { DefaultAzureCredential } = await import('@azure/identity');
  const clientId = settings.managedIdentityClientId;
  const credential = new DefaultAzureCredential(
    clientId === null ? {} : { managedIdentityClientId: clientId },
  );
  return new ContainerClient(url, credential, OPTIONS);
}

function clientBy(connectionString: string, container: string): ContainerClient {
  try {
    return new ContainerClient(connectionString, container, OPTIONS);
  } catch {
    // The library's message may repeat a part of the secret.
    throw new MillraceError(
      'usage',
      'azblob:// has an invalid connection string (storage.azblob.connectionString, or AZURE_STORAGE_CONNECTION_STRING); copy it again from the access keys of the account',
    );
  }
}

/** The account in an address: the first label of the host; with emulators, the first level of the path. */
function accountIn(address: string): string {
  const { hostname, pathname } = new URL(address);
  return pathname === '/' ? (hostname.split('.')[0] ?? '') : (pathname.split('/')[1] ?? '');
}
