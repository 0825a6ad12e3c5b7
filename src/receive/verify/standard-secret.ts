import { createPrivateKey, createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import { MillraceError } from '../../core/errors.ts';

/** A parsed secret of Standard Webhooks. `sign` is null for a public key. */
export type StandardSecret =
  | { readonly version: 'v1'; readonly key: KeyObject }
  | { readonly version: 'v1a'; readonly key: KeyObject; readonly sign: KeyObject | null };

/** Shorter ones can be guessed. Refuses most passwords that are valid base64. */
const MIN_SHARED_BYTES = 16;

/** The bytes before the 32 bytes of an ed25519 seed in PKCS #8. */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

/**
 * Parses `whsec_…` (or only base64), `whpk_…` or `whsk_…`. The keys are made once: an HMAC with a KeyObject takes a quarter of
 * the time of one with a Buffer.
 * @param where the key in the config, for errors, which never contain the secret
 */
export function parseStandardSecret(secret: string, where: string): StandardSecret {
  if (secret.startsWith('whpk_')) {
    return { version: 'v1a', key: publicKey(decode(secret.slice(5), where), where), sign: null };
  }
  if (secret.startsWith('whsk_')) return privateSecret(decode(secret.slice(5), where), where);
  const bytes = decode(secret.startsWith('whsec_') ? secret.slice(6) : secret, where);
  if (bytes.length < MIN_SHARED_BYTES) {
    throw new MillraceError('config_invalid', `${where} is shorter than ${MIN_SHARED_BYTES} bytes`);
  }
  return { version: 'v1', key: createSecretKey(bytes) };
}

/** Buffer.from skips other characters: a secret with a typing error must not become another secret. */
function decode(text: string, where: string): Buffer {
  if (text === '') throw new MillraceError('config_invalid', `${where} is empty`);
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64').replaceAll('=', '') !== text.replace(/={1,2}$/, '')) {
    throw new MillraceError('config_invalid', `${where} is not whsec_, whpk_ or whsk_ followed by base64`);
  }
  return bytes;
}

function publicKey(bytes: Buffer, where: string): KeyObject {
  if (bytes.length !== 32)
    throw new MillraceError('config_invalid', `${where} is not a public key of 32 bytes`);
  return createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') },
    format: 'jwk',
  });
}

/** 32 bytes are the seed; 64 are the seed and its public key. */
function privateSecret(bytes: Buffer, where: string): StandardSecret {
  if (bytes.length !== 32 && bytes.length !== 64) {
    throw new MillraceError('config_invalid', `${where} is not a private key of 32 or 64 bytes`);
  }
  const der = Buffer.concat([PKCS8_ED25519, bytes.subarray(0, 32)]);
  const sign = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const key = createPublicKey(sign);
  if (bytes.length === 64 && !key.equals(publicKey(bytes.subarray(32), where))) {
    throw new MillraceError('config_invalid', `${where} holds a public key that is not its private key's`);
  }
  return { version: 'v1a', key, sign };
}
