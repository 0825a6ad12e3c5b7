import { type KeyObject, verify as verifySlowly } from 'node:crypto';

// Stands in for node:crypto: the states of one history hold the same signed lines, and each is checked once.
export * from 'node:crypto';

const MOST = 10_000;
const known = new Map<string, boolean>();

/** What is signed here names its public key. */
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
