import { type KeyObject, verify as verifySlowly } from 'node:crypto';

const MOST = 10_000;
const known = new Map<string, boolean>();

/** As in node:crypto, for who checks the same signed lines again and again. What is signed has to name its public key. */
export function verify(algorithm: null, data: Buffer, key: KeyObject, signature: Buffer): boolean {
  const text = `${data.toString('latin1')}\n${signature.toString('latin1')}`;
  let isValid = known.get(text);
  if (isValid === undefined) {
    isValid = verifySlowly(algorithm, data, key, signature);
    if (known.size === MOST) known.clear();
    known.set(text, isValid);
  }
  return isValid;
}
