import { createCipheriv, createDecipheriv, type CipherKey } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
/** Bytes at the end that tell whether it is as it was encrypted. */
export const TAG = 16;

/** @param about what it is bound to: it has to be the same for `decrypt` */
export function encrypt(key: CipherKey, nonce: Buffer, about: Buffer, ...plain: readonly Buffer[]): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(about);
  const pieces = plain.map((piece) => cipher.update(piece));
  return Buffer.concat([...pieces, cipher.final(), cipher.getAuthTag()]);
}

/** Null when it is not what `encrypt` made with the same key, nonce and `about`. */
export function decrypt(key: CipherKey, nonce: Buffer, about: Buffer, data: Buffer): Buffer | null {
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
