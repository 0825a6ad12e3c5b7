import { createHmac, sign } from 'node:crypto';
import { MillraceError } from '../core/errors.ts';
import { parseStandardSecret } from './standard-secret.ts';
import type { Family } from './standard-webhooks.ts';

/**
 * Signs a body as a Standard Webhooks sender does: `v1` with a `whsec_` secret, `v1a` with a `whsk_` one.
 * @param timestampMs milliseconds since the epoch; signed as whole seconds.
 * @returns the three signature headers.
 */
export function signStandardWebhooks(
  secret: string,
  id: string,
  timestampMs: number,
  body: Buffer,
  family: Family = 'webhook',
): Record<string, string> {
  const parsed = parseStandardSecret(secret, 'the signing secret');
  const timestamp = String(Math.floor(timestampMs / 1000));
  const prefix = `${id}.${timestamp}.`;
  let signature: string;
  if (parsed.version === 'v1') {
    signature = createHmac('sha256', parsed.key).update(prefix).update(body).digest('base64');
  } else {
    if (parsed.sign === null) throw new MillraceError('config_invalid', 'a whpk_ key can verify, not sign');
    signature = sign(null, Buffer.concat([Buffer.from(prefix), body]), parsed.sign).toString('base64');
  }
  return {
    [`${family}-id`]: id,
    [`${family}-timestamp`]: timestamp,
    [`${family}-signature`]: `${parsed.version},${signature}`,
  };
}
