import { sign } from 'node:crypto';
import { MillraceError } from '../../core/errors.ts';
import { parseStandardSecret, type StandardSecret } from './standard-secret.ts';
import { type Family, signatureV1 } from './standard-webhooks.ts';

/**
 * Signs a body as a Standard Webhooks sender does: `v1` with a `whsec_` secret, `v1a` with a `whsk_` one.
 * @param timestampMs milliseconds since the epoch; signed as whole seconds
 * @returns the three signature headers
 */
export function signStandardWebhooks(
  secret: string,
  id: string,
  timestampMs: number,
  body: Buffer,
  family: Family = 'webhook',
): Record<string, string> {
  return signWith([parseStandardSecret(secret, 'the signing secret')], id, timestampMs, body, family);
}

/** The same with parsed secrets. Each makes a signature: the receiver may have any of them. */
export function signWith(
  secrets: readonly StandardSecret[],
  id: string,
  timestampMs: number,
  body: Buffer,
  family: Family = 'webhook',
): Record<string, string> {
  const timestamp = String(Math.floor(timestampMs / 1000));
  const prefix = `${id}.${timestamp}.`;
  return {
    [`${family}-id`]: id,
    [`${family}-timestamp`]: timestamp,
    [`${family}-signature`]: secrets.map((secret) => signatureBy(secret, prefix, body)).join(' '),
  };
}

function signatureBy(secret: StandardSecret, prefix: string, body: Buffer): string {
  if (secret.version === 'v1') return signatureV1(secret.key, prefix, body);
  if (secret.sign === null) throw new MillraceError('config_invalid', 'a whpk_ key can verify, not sign');
  return `v1a,${sign(null, Buffer.concat([Buffer.from(prefix), body]), secret.sign).toString('base64')}`;
}
