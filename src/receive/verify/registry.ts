import { headerOf } from './headers.ts';
import { bodyId, isDeliveryId } from '../../core/delivery-id.ts';
import { MillraceError } from '../../core/errors.ts';
import { canonicalId } from '../../core/named-ids.ts';
import type { Verifier } from '../../core/verifier.ts';
import { createHmacVerifier, type HmacOptions } from './hmac.ts';
import { createStandardWebhooks } from './standard-webhooks.ts';

export const SCHEMES = ['standard-webhooks', 'hmac', 'none'] as const;
export type Scheme = (typeof SCHEMES)[number];

/** `signing` of a config. */
export interface SigningOptions {
  readonly scheme: Scheme;
  /** All are tried, in this order; the index of the one that matched is reported. */
  readonly secrets: readonly string[];
  /** For each secret the ids of the teams whose events it may sign; null or missing for all teams. */
  readonly teams?: readonly (readonly string[] | null)[];
  /** Milliseconds a signature's timestamp may lie in the past or the future. */
  readonly tolerance: number;
  /** Must be true for the scheme `none`. */
  readonly insecure?: boolean;
  /** Only for the scheme `hmac`; DEFAULT_HMAC has the defaults. */
  readonly hmac?: Partial<HmacOptions>;
  /** Only for the scheme `none`: header with the delivery id. */
  readonly idHeader?: string | null;
}

const REGISTRY = {
  'standard-webhooks': createStandardWebhooks,
  hmac: createHmacVerifier,
  none: (options) => {
    if (options.insecure !== true) {
      throw new MillraceError('config_invalid', 'signing.scheme is none, which needs signing.insecure: true');
    }
    return createUnsigned(options);
  },
} as const satisfies Record<Scheme, (options: SigningOptions) => Verifier>;

/** @throws MillraceError `config_invalid` naming the key, never the secret; `secret_missing`. */
export function createVerifier(options: SigningOptions): Verifier {
  const verifier = REGISTRY[options.scheme](options);
  return options.teams?.some((teams) => teams !== null) === true ? withTeams(verifier, options) : verifier;
}

/** Adds to each verification the teams whose events the secret may sign. */
function withTeams(verifier: Verifier, { secrets, teams = [] }: SigningOptions): Verifier {
  // A secret that is listed twice has the teams of both entries.
  const bound = secrets.map((secret) => {
    const lists = secrets.flatMap((other, index) => (other === secret ? [teams[index] ?? null] : []));
    return lists.includes(null) ? null : new Set(lists.flatMap((list) => (list ?? []).map(canonicalId)));
  });
  return {
    ...verifier,
    verify(headers, body, now) {
      const verified = verifier.verify(headers, body, now);
      const own = verified.ok ? bound[verified.secret] : undefined;
      return verified.ok && own ? { ...verified, teams: own } : verified;
    },
  };
}

/** No signature: anyone who reaches the port can send events. For tests, and behind a proxy that verifies. */
function createUnsigned(options: { idHeader?: string | null }): Verifier {
  const header = options.idHeader?.toLowerCase() ?? null;
  return {
    scheme: 'none',
    verify(headers, body) {
      const id = header === null ? null : headerOf(headers, header);
      if (header === null || id === null || !isDeliveryId(id)) {
        return { ok: true, id: bodyId(body), secret: -1, headers: {} };
      }
      return { ok: true, id, secret: -1, headers: { [header]: id } };
    },
  };
}
