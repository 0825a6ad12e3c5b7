import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { Signer } from '../core/signature.ts';
import { readIfThere } from '../lib/durable.ts';
import { openKeyPem } from '../lib/key-pem.ts';

/**
 * The key that signs, from its file: Ed25519, PKCS #8 in PEM.
 * @returns null when there is no such file
 * @throws MillraceError proof_unusable
 */
export function readSigner(path: string): Signer | null {
  try {
    const pem = readIfThere(path);
    return pem === null ? null : signerOf(pem);
  } catch (error) {
    throw unusable(path, error);
  }
}

/** The same; the key is made, for its owner only, where there is none. */
export async function openSigner(path: string): Promise<Signer> {
  try {
    return signerOf(await openKeyPem(path));
  } catch (error) {
    throw unusable(path, error);
  }
}

function signerOf(pem: string): Signer {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('is not an Ed25519 key');
  return { key, publicKey: publicKeyOf(key) };
}

function unusable(path: string, error: unknown): MillraceError {
  return new MillraceError('proof_unusable', `${path}: ${messageOf(error)}`, { cause: error });
}

function publicKeyOf(key: KeyObject): string {
  return createPublicKey(key).export({ format: 'jwk' }).x ?? '';
}
