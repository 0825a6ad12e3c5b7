import { createSecretKey, hkdfSync, randomBytes, type KeyObject } from 'node:crypto';

const BYTES = 32;
const PREFIX = 'mrk_';

/** A new master key, in the form that `parseMasterKey` reads. */
export function newMasterKey(): string {
  return `${PREFIX}${randomBytes(BYTES).toString('base64')}`;
}

/**
 * The 32 bytes of a master key: base64 with or without `mrk_` in front, or 64 hex digits.
 * @throws Error that does not quote the key
 */
export function parseMasterKey(text: string): Buffer {
  const bare = text.trim().replace(PREFIX, '');
  if (/^[0-9a-f]{64}$/i.test(bare)) return Buffer.from(bare, 'hex');
  const bytes = Buffer.from(bare, 'base64');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(bare) || bytes.length !== BYTES)
    throw new Error('must be 32 bytes in base64, as `millrace keys generate` prints them');
  return bytes;
}

/** What a key of one key file does: it wraps the file's keys, or authenticates its tombstones. */
const USES = { wrapping: 'millrace key store 1', tombstone: 'millrace key store tombstones 2' };

/** @param salt the file's, so that no two files share a key */
export function keyFor(use: keyof typeof USES, master: Buffer, salt: Buffer): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', master, salt, USES[use], BYTES)));
}
