import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
/** Bytes at the end that tell whether it is as it was encrypted. */
export const TAG = 16;

/**
 * @param key never its bare bytes: node takes 15 µs to make a key of them, and 1 µs in `createSecretKey`
 * @param about what it is bound to: it has to be the same for `decrypt`
 */
export function encrypt(key: KeyObject, nonce: Buffer, about: Buffer, plain: Buffer): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(about);
  const text = cipher.update(plain);
  cipher.final();
  return Buffer.concat([text, cipher.getAuthTag()]);
}

/** Null when it is not what `encrypt` made with the same key, nonce and `about`. */
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
