import { createHmac, type KeyObject, timingSafeEqual, verify as verifyAsymmetric } from 'node:crypto';
import { isDeliveryId } from '../../core/delivery-id.ts';
import { MillraceError } from '../../core/errors.ts';
import {
  TRY_BYTES,
  type Precheck,
  type Refusal,
  type RequestHeaders,
  type Verification,
  type Verifier,
} from '../../core/verifier.ts';
import { checkTimestamp, headerOf } from './headers.ts';
import { parseStandardSecret, type StandardSecret } from './standard-secret.ts';

/** Prefix of the header names: all three have the same one. */
export type Family = 'webhook' | 'svix';

/** A sender that rotates secrets sends two or three. */
const MAX_SIGNATURES = 16;

const V1 = /^v1,[A-Za-z0-9+/]{43}=$/;
const V1A = /^v1a,[A-Za-z0-9+/]{86}==$/;

/**
 * Bytes that the tries of one delivery may take. Each key is tried on three signatures in any case, for a sender that
 * rotates its keys.
 */
const MAX_TRIED_BYTES = 5 * TRY_BYTES;
const SIGNATURES_A_KEY = 3;

interface Claim {
  readonly ok: true;
  readonly id: string;
  readonly timestamp: string;
  readonly signatures: readonly string[];
  /** The three headers. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Standard Webhooks: `v1` (HMAC-SHA256) and `v1a` (ed25519) over `id.timestamp.body`, on the raw bytes.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 * @param options.tolerance milliseconds in both directions
 */
export function createStandardWebhooks(options: { secrets: readonly string[]; tolerance: number }): Verifier {
  const secrets = options.secrets.map((secret, index) =>
    parseStandardSecret(secret, `signing.secrets[${index}]`),
  );
  if (secrets.length === 0) throw new MillraceError('secret_missing', 'signing.secrets is empty');
  const shared = secrets.map(({ version, key }) => (version === 'v1' ? key : null));
  const hasShared = shared.some((key) => key !== null);
  const publicKeys = secrets.filter(({ version }) => version === 'v1a').length;
  const { tolerance } = options;
  // The headers are read before the body and again with it, most often without another delivery in between.
  let last: { headers: RequestHeaders; now: number; claim: Claim | Refusal } | null = null;
  const claimAt = (headers: RequestHeaders, now: number): Claim | Refusal => {
    if (last === null || last.headers !== headers || last.now !== now)
      last = { headers, now, claim: timelyClaimOf(headers, now, tolerance) };
    return last.claim;
  };
  return {
    scheme: 'standard-webhooks',
    precheck(headers, now): Precheck {
      const claim = claimAt(headers, now);
      if (!claim.ok) return claim;
      const tries = publicKeys * claim.signatures.filter((text) => V1A.test(text)).length;
      if (tries === 0 && !(hasShared && claim.signatures.some((text) => V1.test(text)))) return MALFORMED;
      return tries === 0 ? CHEAP : { ok: true, tries: Math.min(tries, maxTries(publicKeys, 0)) };
    },
    verify(headers, body, now): Verification {
      const claim = claimAt(headers, now);
      if (!claim.ok) return claim;
      const { signatures } = claim;
      const prefix = `${claim.id}.${claim.timestamp}.`;
      let secret = matchingShared(shared, signatures, prefix, body);
      if (secret < 0 && publicKeys > 0) {
        const tries = maxTries(publicKeys, body.length);
        secret = matchingPublic(secrets, signatures, prefix, body, tries);
      }
      if (secret < 0) return NO_MATCH;
      return { ok: true, id: claim.id, secret, headers: claim.headers };
    },
  };
}

const CHEAP: Precheck = { ok: true, tries: 0 };

const MISSING: Refusal = {
  ok: false,
  code: 'signature_missing',
  detail: 'needs webhook-id, webhook-timestamp, webhook-signature',
};
const BAD_ID = invalid('the id is not 1 to 256 visible ASCII characters');
const MALFORMED = invalid('no signature has a format that the secrets can verify');
const NO_MATCH = invalid('no signature matches any secret');

function invalid(detail: string): Refusal {
  return { ok: false, code: 'signature_invalid', detail };
}

/** The claim of the headers, if they are complete and the time is within the tolerance. */
function timelyClaimOf(headers: RequestHeaders, now: number, tolerance: number): Claim | Refusal {
  const claim = claimOf(headers);
  if (claim === null) return MISSING;
  if (!isDeliveryId(claim.id)) return BAD_ID;
  return checkTimestamp(claim.timestamp, now, tolerance) ?? claim;
}

/** Names of the three headers, by family. */
const FAMILIES = (['webhook', 'svix'] as const).map((family) => ({
  id: `${family}-id`,
  timestamp: `${family}-timestamp`,
  signature: `${family}-signature`,
}));

function claimOf(headers: RequestHeaders): Claim | null {
  for (const names of FAMILIES) {
    const id = headerOf(headers, names.id);
    const timestamp = headerOf(headers, names.timestamp);
    const signature = headerOf(headers, names.signature);
    if (id === null || timestamp === null || signature === null) continue;
    const kept = { [names.id]: id, [names.timestamp]: timestamp, [names.signature]: signature };
    // A repeated header is joined by `, `: its signatures are tried like those of one.
    const signatures = signature.replaceAll(', ', ' ').split(' ', MAX_SIGNATURES);
    return { ok: true, id, timestamp, signatures, headers: kept };
  }
  return null;
}

/** Tries every secret on every signature, so that the time does not show which one matches. */
function matchingShared(
  keys: readonly (KeyObject | null)[],
  signatures: readonly string[],
  prefix: string,
  body: Buffer,
): number {
  let matched = -1;
  for (const [index, key] of keys.entries()) {
    if (key !== null && matchesShared(key, signatures, prefix, body) && matched < 0) matched = index;
  }
  return matched;
}

/** Compares the base64 text, so that only one spelling of a signature is accepted. */
function matchesShared(key: KeyObject, signatures: readonly string[], prefix: string, body: Buffer): boolean {
  const expected = Buffer.from(signatureV1(key, prefix, body));
  let matched = false;
  for (const signature of signatures) {
    const given = Buffer.from(signature);
    if (given.length === expected.length && timingSafeEqual(given, expected)) matched = true;
  }
  return matched;
}

/** How many tries there may be for a body of that length. */
function maxTries(keys: number, length: number): number {
  return Math.max(SIGNATURES_A_KEY * keys, Math.floor(MAX_TRIED_BYTES / (TRY_BYTES + length)));
}

/** Ends with the first match: the keys are public, and the time shows nothing secret. */
function matchingPublic(
  secrets: readonly StandardSecret[],
  signatures: readonly string[],
  prefix: string,
  body: Buffer,
  tries: number,
): number {
  const candidates = signatures.map(ed25519Of).filter((bytes) => bytes !== null);
  if (candidates.length === 0) return -1;
  const content = Buffer.concat([Buffer.from(prefix), body]);
  let left = tries;
  // By signature, so that the first ones are tried with every key.
  for (const signature of candidates) {
    for (const [index, { version, key }] of secrets.entries()) {
      if (version !== 'v1a') continue;
      if (left === 0) return -1;
      left -= 1;
      if (verifyAsymmetric(null, content, key, signature)) return index;
    }
  }
  return -1;
}

/** The bytes of a `v1a` signature; null for another text, also for another spelling of the same bytes. */
function ed25519Of(signature: string): Buffer | null {
  if (!V1A.test(signature)) return null;
  const bytes = Buffer.from(signature.slice(4), 'base64');
  return bytes.length === 64 && bytes.toString('base64') === signature.slice(4) ? bytes : null;
}

/** The `v1` signature of `id.timestamp.` and a body. */
export function signatureV1(key: KeyObject, prefix: string, body: Buffer): string {
  return `v1,${createHmac('sha256', key).update(prefix).update(body).digest('base64')}`;
}
