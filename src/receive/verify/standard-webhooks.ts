import { timingSafeEqual, verify as verifyAsymmetric } from 'node:crypto';
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
import { HmacSha256 } from './hmac-sha256.ts';
import { parseStandardSecret, type StandardSecret } from './standard-secret.ts';

/** Prefix of the header names. A family is used whole; they are never mixed. */
export type Family = 'webhook' | 'svix';

/** A sender that rotates secrets sends two or three. */
const MAX_SIGNATURES = 16;

const V1 = /^v1,[A-Za-z0-9+/]{43}=$/;
const V1A = /^v1a,[A-Za-z0-9+/]{86}==$/;

/**
 * What the tries of one delivery may cost; each key is tried on three signatures in any case, for a sender that changes
 * from one to another.
 */
const MAX_TRIED_BYTES = 5 * TRY_BYTES;
const SIGNATURES_A_KEY = 3;

interface Claim {
  readonly ok: true;
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
  /** The three headers as they came. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Standard Webhooks: `v1` (HMAC-SHA256) and `v1a` (ed25519) over `id.timestamp.body`, on the raw bytes.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 * @param options.tolerance milliseconds in both directions.
 */
export function createStandardWebhooks(options: { secrets: readonly string[]; tolerance: number }): Verifier {
  const secrets = options.secrets.map((secret, index) =>
    parseStandardSecret(secret, `signing.secrets[${index}]`),
  );
  if (secrets.length === 0) throw new MillraceError('secret_missing', 'signing.secrets is empty');
  const shared = secrets.map(({ version, key }) => (version === 'v1' ? new HmacSha256(key) : null));
  const hasShared = shared.some((key) => key !== null);
  const publicKeys = secrets.filter(({ version }) => version === 'v1a').length;
  const { tolerance } = options;
  // A delivery's headers are looked at before its body and again with it, most often with no other in between.
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
      const signatures = signaturesIn(claim.signature);
      const tries = publicKeys === 0 ? 0 : publicKeys * signatures.filter((text) => V1A.test(text)).length;
      if (tries === 0 && !(hasShared && signatures.some((text) => V1.test(text)))) return MALFORMED;
      return tries === 0 ? CHEAP : { ok: true, tries: Math.min(tries, maxTries(publicKeys, 0)) };
    },
    verify(headers, body, now): Verification {
      const claim = claimAt(headers, now);
      if (!claim.ok) return claim;
      const signatures = signaturesIn(claim.signature);
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

/** What the headers claim, when it is whole and signed about now. */
function timelyClaimOf(headers: RequestHeaders, now: number, tolerance: number): Claim | Refusal {
  const claim = claimOf(headers);
  if (claim === null) return MISSING;
  if (!isDeliveryId(claim.id)) return BAD_ID;
  return checkTimestamp(claim.timestamp, now, tolerance) ?? claim;
}

/** A header that comes twice is joined by `, `, and its signatures are tried as those of one. */
function signaturesIn(header: string): string[] {
  return (header.includes(', ') ? header.replaceAll(', ', ' ') : header).split(' ', MAX_SIGNATURES);
}

/** Written out for each family: names put together at every request would cost as much as the comparison. */
function claimOf(headers: RequestHeaders): Claim | null {
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signature = headerOf(headers, 'webhook-signature');
  if (id === null || timestamp === null || signature === null) return svixClaimOf(headers);
  const kept = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  return { ok: true, id, timestamp, signature, headers: kept };
}

function svixClaimOf(headers: RequestHeaders): Claim | null {
  const id = headerOf(headers, 'svix-id');
  const timestamp = headerOf(headers, 'svix-timestamp');
  const signature = headerOf(headers, 'svix-signature');
  if (id === null || timestamp === null || signature === null) return null;
  const kept = { 'svix-id': id, 'svix-timestamp': timestamp, 'svix-signature': signature };
  return { ok: true, id, timestamp, signature, headers: kept };
}

/** Tries every secret on every signature, match or not, so that the time taken says nothing about which one fits. */
function matchingShared(
  keys: readonly (HmacSha256 | null)[],
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

/** Of `v1,` and an HMAC-SHA256 in base64; the buffers are used again for each. */
const V1_LENGTH = 47;
const EXPECTED = Buffer.from('v1,'.padEnd(V1_LENGTH));
const GIVEN = Buffer.alloc(V1_LENGTH);

/** Compares the base64 text, not what it decodes to: one signature has exactly one spelling. */
function matchesShared(
  key: HmacSha256,
  signatures: readonly string[],
  prefix: string,
  body: Buffer,
): boolean {
  EXPECTED.write(key.sign(prefix, body), 3, 'latin1');
  let matched = false;
  for (const signature of signatures) {
    // What is not ASCII takes more bytes than characters, and does not fit.
    const isWhole = signature.length === V1_LENGTH && GIVEN.write(signature) === V1_LENGTH;
    if (isWhole && timingSafeEqual(GIVEN, EXPECTED)) matched = true;
  }
  return matched;
}

/** How often the keys may be tried on a body of that length. */
function maxTries(keys: number, length: number): number {
  return Math.max(SIGNATURES_A_KEY * keys, Math.floor(MAX_TRIED_BYTES / (TRY_BYTES + length)));
}

/** Ends with the first match: these keys are public, so there is nothing to learn from the time it takes. */
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
  // Signature by signature: so few of them as are sure to be tried are tried with every key.
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

/** The bytes of a `v1a` signature; `null` for anything else, another spelling of the same bytes too. */
function ed25519Of(signature: string): Buffer | null {
  if (!V1A.test(signature)) return null;
  const bytes = Buffer.from(signature.slice(4), 'base64');
  return bytes.length === 64 && bytes.toString('base64') === signature.slice(4) ? bytes : null;
}
