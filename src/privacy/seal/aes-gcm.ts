import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
/** Bytes of the authentication tag at the end. */
export const TAG = 16;

/**
 * @param key a `KeyObject`: node takes 15 µs for bare bytes, and 1 µs in `createSecretKey`
 * @param about additional data that `decrypt` needs as well
 */
export function encrypt(key: KeyObject, nonce: Buffer, about: Buffer, plain: Buffer): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(about);
  const text = cipher.update(plain);
  cipher.final();
  return Buffer.concat([text, cipher.getAuthTag()]);
}

/** Null unless `encrypt` made it with the same key, nonce and `about`. */
export function decrypt(key: KeyObject, nonce: Buffer, about: Buffer, data: Buffer): Buffer | null {
  const end = data.length - TAG;
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG });
  decipher.setAAD(about).setAuthTag(data.subarray(end));
  const plain = decipher.update(data.subarray(0, end));
  try {
    decipher.final();
    return plain;
  } catch {
    return null;
  }
}
