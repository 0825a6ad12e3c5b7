import { type KeyObject, verify as verifySlowly } from 'node:crypto';
import { here } from './world.ts';

// Stands in for node:crypto, for what is random there.
export * from 'node:crypto';

export function randomBytes(count: number): Buffer {
  return here().scheduler.random.bytes(count);
}

export function randomUUID(): string {
  const hex = randomBytes(16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}

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
