import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { SealedRecord } from '../core/sealed-record.ts';
import { decrypt, encrypt, TAG } from './aes-gcm.ts';
import { DICTIONARY } from './dictionary.ts';

/**
 * Nonces are 24 random bytes: the first half and the key make a key for this record alone, the second half is the nonce
 * it is used with. So nonces cannot repeat in practice, however many records a key seals, and nothing is to be counted.
 */
const NONCE = 24;
const HALF = 12;
const KEY_ID = /^[0-9a-f]{32}$/;

const LARGE = 8192;
/** A window as small as the record: setting up a larger one takes longer than the work. */
const SMALL_DEFLATE = {
  level: 4,
  memLevel: 5,
  windowBits: 14,
  chunkSize: 4096,
  dictionary: DICTIONARY,
} as const;
const LARGE_DEFLATE = { level: 4, dictionary: DICTIONARY } as const;
/** More than any record is; a bound for what a forged one could unfold to. */
const LONGEST = 512 * 2 ** 20;

/** Says how the text is compressed: raw deflate with the dictionary. */
const DEFLATED = 1;
const FLAGS = Buffer.of(DEFLATED);
const INFLATE = { dictionary: DICTIONARY, maxOutputLength: LONGEST } as const;

/**
 * Seals the line of a record. It is compressed first, for nothing compresses afterwards but the base64 around it.
 * The key's id and the time outside are bound to what is inside: neither can be exchanged.
 * @param key 32 bytes
 * @param line without its line break
 */
export function sealLine(id: string, key: KeyObject, receivedAt: string, line: Buffer): SealedRecord {
  const nonce = freshNonce();
  const text = deflateRawSync(line, line.length > LARGE ? LARGE_DEFLATE : SMALL_DEFLATE);
  const data = encrypt(
    recordKey(key, nonce),
    nonce.subarray(HALF),
    about(id, receivedAt),
    Buffer.concat([FLAGS, text]),
  );
  return { key: id, received_at: receivedAt, nonce, data };
}

/** The line of a sealed record; null when it, or what stands around it, is not as it was sealed. */
export function openLine(
  key: KeyObject,
  { key: id, received_at: receivedAt, nonce, data }: SealedRecord,
): Buffer | null {
  if (nonce.length !== NONCE || data.length <= TAG || !KEY_ID.test(id)) return null;
  const plain = decrypt(recordKey(key, nonce), nonce.subarray(HALF), about(id, receivedAt), data);
  try {
    return plain?.[0] === DEFLATED ? inflateRawSync(plain.subarray(1), INFLATE) : null;
  } catch {
    return null;
  }
}

/** Asking for them one at a time takes longer than all else that is done with them. */
const NONCES = 256;
let nonces = Buffer.alloc(0);

function freshNonce(): Buffer {
  if (nonces.length === 0) nonces = randomBytes(NONCE * NONCES);
  const nonce = nonces.subarray(0, NONCE);
  nonces = nonces.subarray(NONCE);
  return nonce;
}

function recordKey(key: KeyObject, nonce: Buffer): KeyObject {
  return createSecretKey(createHmac('sha256', key).update('record').update(nonce.subarray(0, HALF)).digest());
}

function about(id: string, receivedAt: string): Buffer {
  return Buffer.from(`millrace sealed 1 ${id} ${receivedAt}`);
}
