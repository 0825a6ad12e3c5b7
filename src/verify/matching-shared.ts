import { timingSafeEqual } from 'node:crypto';
import type { HmacSha256 } from './hmac-sha256.ts';

/** A sender that rotates secrets sends two or three. */
export const MAX_SIGNATURES = 16;

/** Tries every secret on every signature, match or not, so that the time taken says nothing about which one fits. */
export function matchingShared(
  keys: readonly (HmacSha256 | null)[],
  signatures: readonly string[],
  prefix: string,
  body: Buffer,
): number {
  let matched = -1;
  for (const [index, key] of keys.entries()) {
    if (key !== null && matchesShared(key, signatures, prefix, body) && matched < 0) matched = index;
  }
  return matched;
}

/** Of `v1,` and an HMAC-SHA256 in base64; the buffers are used again for each. */
const V1_LENGTH = 47;
const EXPECTED = Buffer.from('v1,'.padEnd(V1_LENGTH));
const GIVEN = Buffer.alloc(V1_LENGTH);

/** Compares the base64 text, not what it decodes to: one signature has exactly one spelling. */
function matchesShared(
  key: HmacSha256,
  signatures: readonly string[],
  prefix: string,
  body: Buffer,
): boolean {
  EXPECTED.write(key.sign(prefix, body), 3, 'latin1');
  let matched = false;
  for (const signature of signatures) {
    // What is not ASCII takes more bytes than characters, and does not fit.
    const isWhole = signature.length === V1_LENGTH && GIVEN.write(signature) === V1_LENGTH;
    if (isWhole && timingSafeEqual(GIVEN, EXPECTED)) matched = true;
  }
  return matched;
}
