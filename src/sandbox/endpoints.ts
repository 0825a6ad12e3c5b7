import { MillraceError } from '../core/errors.ts';
import { newSecret } from '../core/secrets.ts';
import { signStandardWebhooks } from '../receive/verify/sign-standard-webhooks.ts';
import { Refusal } from './check.ts';
import { DAY_MS } from './made-up-health.ts';
import { uuidOf, type Name } from './seeded.ts';
import type { Timers } from './timers.ts';

export type HeaderFamily = 'svix' | 'webhook';

/** The target of webhooks. `enabled` → (five days of failures only, or an update) `disabled` → (an update) `enabled`. */
export interface Endpoint {
  readonly id: string;
  readonly teamId: string;
  url: string;
  /** Prefixes of event types; empty for all. */
  eventTypes: readonly string[];
  /** Newest first; during a rotation each signs. */
  secrets: readonly string[];
  /** Sent with every event. */
  headers: Readonly<Record<string, string>>;
  readonly family: HeaderFamily;
  disabled: boolean;
  /** Sandbox time of the first failure since the last success; null when the last attempt succeeded. */
  failingSince: number | null;
}

export interface NewEndpoint {
  readonly url: string;
  /** `whsec_…` or `whsk_…`. Default: a new `whsec_`. */
  readonly secret?: string | undefined;
  readonly eventTypes?: readonly string[] | undefined;
  /** Prefix of the signature headers. Default `svix`. */
  readonly family?: HeaderFamily | undefined;
}

/** For so long the old secret signs too. */
const ROTATION_MS = DAY_MS;

/** The webhooks of all teams. */
export class Endpoints {
  readonly #timers: Timers;
  readonly #seed: Name;
  readonly #endpoints = new Map<string, Endpoint>();
  #made = 0;

  constructor(timers: Timers, seed: Name) {
    this.#timers = timers;
    this.#seed = seed;
  }

  /** @throws Refusal 422 when the secret cannot sign */
  create(
    teamId: string,
    { url, secret = newSecret(), eventTypes = [], family = 'svix' }: NewEndpoint,
  ): Endpoint {
    needSigner(secret);
    this.#made += 1;
    const endpoint: Endpoint = {
      id: uuidOf(this.#seed, 'endpoint', this.#made),
      teamId,
      url,
      eventTypes,
      secrets: [secret],
      headers: {},
      family,
      disabled: false,
      failingSince: null,
    };
    this.#endpoints.set(endpoint.id, endpoint);
    return endpoint;
  }

  /** @throws Refusal 404 */
  get(teamId: string, id: string): Endpoint {
    const endpoint = this.#endpoints.get(id);
    if (endpoint?.teamId !== teamId) throw new Refusal(404, 'Webhook not found');
    return endpoint;
  }

  list(teamId: string): Endpoint[] {
    return [...this.#endpoints.values()].filter((endpoint) => endpoint.teamId === teamId);
  }

  has(endpoint: Endpoint): boolean {
    return this.#endpoints.has(endpoint.id);
  }

  delete(endpoint: Endpoint): void {
    this.#endpoints.delete(endpoint.id);
  }

  /** @throws Refusal 422 when the secret cannot sign */
  rotate(endpoint: Endpoint, secret: string = newSecret()): void {
    needSigner(secret);
    endpoint.secrets = [secret, ...endpoint.secrets.filter((one) => one !== secret)];
    this.#timers.after(ROTATION_MS, () => {
      const newest = endpoint.secrets.indexOf(secret);
      if (newest >= 0) endpoint.secrets = endpoint.secrets.slice(0, newest + 1);
    });
  }
}

/** Signature headers by every secret of the endpoint; the signatures share one header, with spaces between. */
export function signatureHeaders(
  { secrets, family }: Pick<Endpoint, 'secrets' | 'family'>,
  id: string,
  timestampMs: number,
  body: Buffer,
): Record<string, string> {
  const all = secrets.map((secret) => signStandardWebhooks(secret, id, timestampMs, body, family));
  const name = `${family}-signature`;
  return { ...all[0], [name]: all.map((headers) => headers[name]).join(' ') };
}

function needSigner(secret: string): void {
  try {
    signStandardWebhooks(secret, 'msg_try', 0, Buffer.from('{}'));
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    throw new Refusal(422, [{ loc: ['body', 'secret'], msg: error.detail, type: 'value_error' }]);
  }
}
