import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { dirname } from 'node:path';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { Signer } from '../core/signature.ts';
import { makeFolder, OWNER_ONLY, readIfThere, syncFound } from '../lib/durable.ts';
import { writeOnce } from '../lib/new-file.ts';

/**
 * The key that signs, from its file: Ed25519, PKCS #8 in PEM.
 * @returns null when there is no such file
 * @throws MillraceError proof_unusable
 */
export function readSigner(path: string): Signer | null {
  try {
    const pem = readIfThere(path);
    if (pem === null) return null;
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType !== 'ed25519') throw new Error('is not an Ed25519 key');
    return { key, publicKey: publicKeyOf(key) };
  } catch (error) {
    throw new MillraceError('proof_unusable', `${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** The same; the key is made, for its owner only, where there is none. */
export async function openSigner(path: string): Promise<Signer> {
  const known = readSigner(path);
  try {
    if (known !== null) {
      await syncFound(path);
      return known;
    }
    makeFolder(dirname(path), 0o700);
    const { privateKey } = generateKeyPairSync('ed25519');
    const pem = Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' }));
    await writeOnce(path, pem, OWNER_ONLY);
  } catch (error) {
    throw new MillraceError('proof_unusable', `${path}: ${messageOf(error)}`, { cause: error });
  }
  const made = readSigner(path);
  if (made === null) throw new MillraceError('proof_unusable', `${path} has disappeared`);
  return made;
}

function publicKeyOf(key: KeyObject): string {
  return createPublicKey(key).export({ format: 'jwk' }).x ?? '';
}
