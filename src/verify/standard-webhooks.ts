import { createHmac, timingSafeEqual, verify as verifyAsymmetric } from 'node:crypto';
import { MillraceError } from '../core/errors.ts';
import type { RequestHeaders, Verification, Verifier } from '../core/verifier.ts';
import { headerOf, isDeliveryId } from './headers.ts';
import { parseStandardSecret, type StandardSecret } from './standard-secret.ts';
import { checkTimestamp } from './timestamp.ts';

/** Prefix of the header names. A family is used whole; they are never mixed. */
export type Family = 'webhook' | 'svix';

/** A sender that rotates secrets sends two or three; each ed25519 one costs a forger's victim 0.1 ms. */
const MAX_SIGNATURES = 16;

interface Claim {
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
  const { tolerance } = options;
  return {
    scheme: 'standard-webhooks',
    verify(headers, body, now): Verification {
      const claim = claimOf(headers);
      if (claim === null) {
        return {
          ok: false,
          code: 'signature_missing',
          detail: 'needs webhook-id, webhook-timestamp, webhook-signature',
        };
      }
      if (!isDeliveryId(claim.id)) {
        return {
          ok: false,
          code: 'signature_invalid',
          detail: 'the id is not 1 to 256 visible ASCII characters',
        };
      }
      const untimely = checkTimestamp(claim.timestamp, now, tolerance);
      if (untimely !== null) return untimely;
      const signatures = claim.signature.split(' ', MAX_SIGNATURES);
      const secret = matchingSecret(secrets, signatures, `${claim.id}.${claim.timestamp}.`, body);
      if (secret < 0)
        return { ok: false, code: 'signature_invalid', detail: 'no signature matches any secret' };
      return { ok: true, id: claim.id, secret, headers: claim.headers };
    },
  };
}

/** Written out for each family: names put together at every request would cost as much as the comparison. */
function claimOf(headers: RequestHeaders): Claim | null {
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signature = headerOf(headers, 'webhook-signature');
  if (id === null || timestamp === null || signature === null) return svixClaimOf(headers);
  const kept = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  return { id, timestamp, signature, headers: kept };
}

function svixClaimOf(headers: RequestHeaders): Claim | null {
  const id = headerOf(headers, 'svix-id');
  const timestamp = headerOf(headers, 'svix-timestamp');
  const signature = headerOf(headers, 'svix-signature');
  if (id === null || timestamp === null || signature === null) return null;
  const kept = { 'svix-id': id, 'svix-timestamp': timestamp, 'svix-signature': signature };
  return { id, timestamp, signature, headers: kept };
}

/** Tries every secret on every signature, match or not, so that the time taken says nothing about which one fits. */
function matchingSecret(
  secrets: readonly StandardSecret[],
  signatures: readonly string[],
  prefix: string,
  body: Buffer,
): number {
  let matched = -1;
  for (const [index, secret] of secrets.entries()) {
    const matches = secret.version === 'v1' ? matchesShared : matchesPublic;
    if (matches(secret, signatures, prefix, body) && matched < 0) matched = index;
  }
  return matched;
}

/** Compares the base64 text, not what it decodes to: one signature has exactly one spelling. */
function matchesShared(
  secret: StandardSecret,
  signatures: readonly string[],
  prefix: string,
  body: Buffer,
): boolean {
  const expected = Buffer.from(
    `v1,${createHmac('sha256', secret.key).update(prefix).update(body).digest('base64')}`,
  );
  let matched = false;
  for (const signature of signatures) {
    const given = Buffer.from(signature);
    if (given.length === expected.length && timingSafeEqual(given, expected)) matched = true;
  }
  return matched;
}

function matchesPublic(
  secret: StandardSecret,
  signatures: readonly string[],
  prefix: string,
  body: Buffer,
): boolean {
  let matched = false;
  let content: Buffer | null = null;
  for (const signature of signatures) {
    if (!signature.startsWith('v1a,')) continue;
    const text = signature.slice(4);
    const given = Buffer.from(text, 'base64');
    if (given.length !== 64 || given.toString('base64') !== text) continue;
    content ??= Buffer.concat([Buffer.from(prefix), body]);
    if (verifyAsymmetric(null, content, secret.key, given)) matched = true;
  }
  return matched;
}
