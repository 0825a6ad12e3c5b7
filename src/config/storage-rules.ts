import type { StorageSettings } from '../storage/fields.ts';

/** Each names the account, or signs in, by itself. */
const BESIDE_NO_CONNECTION_STRING = ['account', 'endpoint'] as const;
const SIGN_IN = ['connectionString', 'accountKey', 'sasToken', 'managedIdentityClientId'] as const;

/** What one key of `storage` demands of another: what is not used would be believed to be. */
export function checkStorage(
  { s3, azblob }: StorageSettings,
  wrong: (path: string[], message: string) => void,
): void {
  const { accessKeyId, secretAccessKey, sessionToken } = s3;
  const beside = secretAccessKey !== null ? 'secretAccessKey' : sessionToken !== null ? 'sessionToken' : null;
  if (accessKeyId === null && beside !== null)
    wrong(['storage', 's3', 'accessKeyId'], `must be set beside storage.s3.${beside}`);
  if (accessKeyId !== null && secretAccessKey === null)
    wrong(['storage', 's3', 'secretAccessKey'], 'must be set beside storage.s3.accessKeyId');

  const [first, ...others] = SIGN_IN.filter((key) => azblob[key] !== null);
  const names = azblob.connectionString === null ? [] : BESIDE_NO_CONNECTION_STRING;
  for (const key of [...others, ...names.filter((name) => azblob[name] !== null)])
    wrong(['storage', 'azblob', key], `must be left out beside storage.azblob.${first}`);
}
