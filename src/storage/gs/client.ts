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
import { type Dispatcher, EnvHttpProxyAgent, request } from 'undici';
import { messageOf } from '../../core/errors.ts';
import { StorageError } from '../../core/storage.ts';
import type { Environment } from '../driver.ts';
import type { StorageSettings } from '../fields.ts';
import { AnswerError } from './fault.ts';

const GOOGLE = 'https://storage.googleapis.com';

export interface GoogleRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Encoded, from the root of the service. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  /** Statuses that are no errors, beside 2xx. */
  readonly fine?: readonly number[];
  readonly signal: AbortSignal;
}

export interface GoogleAnswer<Body> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Body;
}

/**
 * Single requests to the JSON API, signed in by Google's library. Its storage client cannot be used: it makes several requests of one
 * call, and aborts none.
 */
export class GoogleClient {
  readonly #endpoint: string;
  readonly #isOpen: boolean;
  readonly #keyFile: string | null;
  readonly #userProject: string | null;
  readonly #agent: EnvHttpProxyAgent;
  #signedIn: Promise<SignedIn> | null = null;

  constructor({ endpoint, keyFile, userProject }: StorageSettings['gs'], env: Environment) {
    const emulator = env['STORAGE_EMULATOR_HOST'] || null;
    const address =
      endpoint ??
      (emulator === null ? GOOGLE : /^https?:\/\//.test(emulator) ? emulator : `http://${emulator}`);
    this.#endpoint = address.replace(/\/$/, '');
    // Without TLS others could read a token; an emulator needs none.
    this.#isOpen = this.#endpoint.startsWith('http:') || (endpoint === null && emulator !== null);
    this.#keyFile = keyFile;
    this.#userProject = userProject;
    // remote-store.ts has the time limits.
    this.#agent = new EnvHttpProxyAgent({ headersTimeout: 0, bodyTimeout: 0 });
  }

  /** @returns the answer while its body comes in @throws AnswerError for a status that is neither 2xx nor `fine` */
  async open(asked: GoogleRequest): Promise<GoogleAnswer<Dispatcher.ResponseData['body']>> {
    const { method = 'GET', path, query = {}, body = null, fine = [], signal } = asked;
    const url = new URL(`${this.#endpoint}${path}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    if (this.#userProject !== null) url.searchParams.set('userProject', this.#userProject);
    const headers = { ...(await this.#credentials()), ...asked.headers };
    const answer = await request(url, { method, headers, body, signal, dispatcher: this.#agent });
    const { statusCode: status } = answer;
    if ((status >= 200 && status < 300) || fine.includes(status))
      return { status, headers: answer.headers, body: answer.body };
    throw new AnswerError(status, answer.headers, await answer.body.text());
  }

  async ask(asked: GoogleRequest): Promise<GoogleAnswer<string>> {
    const { body, ...answer } = await this.open(asked);
    return { ...answer, body: await body.text() };
  }

  async json<T>(asked: GoogleRequest): Promise<T> {
    return JSON.parse((await this.ask(asked)).body) as T;
  }

  close(): void {
    void this.#agent.destroy();
  }

  async #credentials(): Promise<Record<string, string>> {
    if (this.#isOpen) return {};
    this.#signedIn ??= signIn(this.#keyFile).catch((error: unknown) => {
      this.#signedIn = null;
      throw new StorageError('denied', messageOf(error), { cause: error });
    });
    const headers = await (await this.#signedIn).getRequestHeaders();
    return Object.fromEntries(headers.entries());
  }
}

const SCOPE = 'https://www.googleapis.com/auth/devstorage.full_control';

/** Gives the headers with the credentials. */
type SignedIn = Pick<AuthClient, 'getRequestHeaders'>;

type WorkloadIdentity = AwsClientOptions | IdentityPoolClientOptions | PluggableAuthClientOptions;

/**
 * Signs in with a file of credentials, or with the default chain of Google's library. Chooses the client for a file here, because the
 * library prints a warning when it does.
 * @param keyFile of a service account or a workload identity; null for the default chain
 * @throws the system's error when the file cannot be read, or an Error that quotes nothing of it
 */
export async function signIn(keyFile: string | null): Promise<SignedIn> {
  if (keyFile === null) return new GoogleAuth({ scopes: SCOPE });
  const given = parsed(await readFile(keyFile, 'utf8'), keyFile);
  if (given.type === 'service_account') {
    const client = new JWT({ scopes: [SCOPE] });
    client.fromJSON(given as JWTInput);
    return client;
  }
  // Other kinds, such as the file of the CLI's login, with the warning.
  if (given.type !== 'external_account') return new GoogleAuth({ scopes: SCOPE, keyFile });
  const client = identityOf(given as unknown as WorkloadIdentity);
  client.scopes = [SCOPE];
  return client;
}

/** The same choice as the library's. */
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
