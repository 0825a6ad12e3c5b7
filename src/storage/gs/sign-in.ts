import {
  type AuthClient,
  AwsClient,
  type AwsClientOptions,
  GoogleAuth,
  IdentityPoolClient,
  type IdentityPoolClientOptions,
  JWT,
  type JWTInput,
  PluggableAuthClient,
  type PluggableAuthClientOptions,
} from 'google-auth-library';
import { readFile } from 'node:fs/promises';

const SCOPE = 'https://www.googleapis.com/auth/devstorage.full_control';

/** Gives the headers that say who asks. */
export type SignedIn = Pick<AuthClient, 'getRequestHeaders'>;

type WorkloadIdentity = AwsClientOptions | IdentityPoolClientOptions | PluggableAuthClientOptions;

/**
 * Signs in by a file of credentials, or by the default chain of Google's library. Which client a file asks for is decided here: the
 * library's own way prints a warning, as a file from a stranger could ask for any.
 * @param keyFile a service account's, or a workload identity's; null for the default chain
 * @throws the system's error when it cannot be read, or an Error that quotes nothing of it
 */
export async function signIn(keyFile: string | null): Promise<SignedIn> {
  if (keyFile === null) return new GoogleAuth({ scopes: SCOPE });
  const given = parsed(await readFile(keyFile, 'utf8'), keyFile);
  if (given.type === 'service_account') {
    const client = new JWT({ scopes: [SCOPE] });
    client.fromJSON(given as JWTInput);
    return client;
  }
  // Others too, such as what the CLI's login leaves, with the warning.
  if (given.type !== 'external_account') return new GoogleAuth({ scopes: SCOPE, keyFile });
  const client = identityOf(given as unknown as WorkloadIdentity);
  client.scopes = [SCOPE];
  return client;
}

/** The library's rule. */
function identityOf(given: WorkloadIdentity): AwsClient | PluggableAuthClient | IdentityPoolClient {
  const source = (given.credential_source ?? {}) as Readonly<Record<string, unknown>>;
  if (source['environment_id'] !== undefined) return new AwsClient(given as AwsClientOptions);
  if (source['executable'] !== undefined) return new PluggableAuthClient(given as PluggableAuthClientOptions);
  return new IdentityPoolClient(given as IdentityPoolClientOptions);
}

function parsed(text: string, keyFile: string): { readonly type?: unknown } {
  try {
    return JSON.parse(text) as { readonly type?: unknown };
  } catch {
    throw new Error(`${keyFile} holds no credentials: it is not JSON`);
  }
}
