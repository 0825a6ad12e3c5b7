import { createCipheriv, createDecipheriv, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { wrappingKey } from './master-key.ts';

/**
 * The layout of a key file: a header and slots of the same size, a key each, so that a key can be overwritten where it
 * lies. All sizes are bytes.
 *
 * header: magic 8 · salt 16 · nonce 12 · look-up key, wrapped 32+16 · zeros · CRC-32 4
 * slot:   state 1 · zeros 3 · key id 16 · owner 48 · key, wrapped 32+16 · zeros · CRC-32 4
 *
 * `owner` is three keyed hashes of 16 bytes: of team, user and client user, zeros for one that is absent.
 */
export const SLOT = 128;
const MAGIC = Buffer.from('MILLKEY1');
const SALT = { from: 8, to: 24 } as const;
const NONCE = { from: 24, to: 36 } as const;
const LOOKUP = { from: 36, to: 84 } as const;
const ID = { from: 4, to: 20 } as const;
const OWNER = { from: 20, to: 68 } as const;
const WRAPPED = { from: 68, to: 116 } as const;
const CRC = SLOT - 4;
const ACTIVE = 1;
const DESTROYED = 2;
const TAG = 16;
const NONCE_BYTES = NONCE.to - NONCE.from;

/** What stands in a slot, as views into it; `free` was never written, `damaged` is none of them. */
export type Slot =
  | { readonly state: 'active'; readonly id: Buffer; readonly owner: Buffer; readonly wrapped: Buffer }
  | { readonly state: 'destroyed'; readonly id: Buffer }
  | { readonly state: 'free' | 'damaged' };

/** The keys of a file: the one that wraps the others, and the one that owners are hashed with. */
export interface FileKeys {
  readonly wrapping: KeyObject;
  readonly lookup: KeyObject;
}

/** A header for a file of its own, and its keys. @param lookup of the file it takes the place of */
export function newHeader(
  master: Buffer,
  lookup: KeyObject = createSecretKey(randomBytes(32)),
): { header: Buffer; keys: FileKeys } {
  const header = Buffer.alloc(SLOT);
  MAGIC.copy(header);
  randomBytes(NONCE.to - SALT.from).copy(header, SALT.from);
  const wrapping = wrappingKey(master, at(header, SALT));
  encrypt(wrapping, at(header, NONCE), at(header, { from: 0, to: NONCE.to }), lookup.export()).copy(
    header,
    LOOKUP.from,
  );
  return { header: checked(header), keys: { wrapping, lookup } };
}

/** The keys behind a header; null when the master key is another. @throws Error when it is no header */
export function openHeader(header: Buffer, master: Buffer): FileKeys | null {
  if (header.length < SLOT || !at(header, { from: 0, to: MAGIC.length }).equals(MAGIC) || !isSound(header))
    throw new Error('keys.bin is no key file, or its first bytes are damaged');
  const wrapping = wrappingKey(master, at(header, SALT));
  const lookup = decrypt(
    wrapping,
    at(header, NONCE),
    at(header, { from: 0, to: NONCE.to }),
    at(header, LOOKUP),
  );
  return lookup === null ? null : { wrapping, lookup: createSecretKey(lookup) };
}

export function readSlot(bytes: Buffer): Slot {
  if (!isSound(bytes)) return { state: bytes.every((byte) => byte === 0) ? 'free' : 'damaged' };
  const id = at(bytes, ID);
  if (bytes[0] === DESTROYED) return { state: 'destroyed', id };
  if (bytes[0] !== ACTIVE) return { state: 'damaged' };
  return { state: 'active', id, owner: at(bytes, OWNER), wrapped: at(bytes, WRAPPED) };
}

/** The owner of an active slot. */
export function ownerOf(bytes: Buffer): Buffer {
  return at(bytes, OWNER);
}

export function activeSlot(wrapping: KeyObject, id: Buffer, owner: Buffer, key: Buffer): Buffer {
  const slot = Buffer.alloc(SLOT);
  slot[0] = ACTIVE;
  id.copy(slot, ID.from);
  owner.copy(slot, OWNER.from);
  wrapKey(wrapping, id, owner, key).copy(slot, WRAPPED.from);
  return checked(slot);
}

/** What takes the place of a slot whose key is to be gone: its id, so that records can say why they do not open. */
export function destroyedSlot(id: Buffer): Buffer {
  const slot = Buffer.alloc(SLOT);
  slot[0] = DESTROYED;
  id.copy(slot, ID.from);
  return checked(slot);
}

// The id is random and the wrapping key the file's own, so the id's first bytes are a nonce that does not repeat.
function wrapKey(wrapping: KeyObject, id: Buffer, owner: Buffer, key: Buffer): Buffer {
  return encrypt(wrapping, id.subarray(0, NONCE_BYTES), Buffer.concat([id, owner]), key);
}

/** Null when it was wrapped with another key, or for another owner. */
export function unwrapKey(
  wrapping: KeyObject,
  { id, owner, wrapped }: Slot & { state: 'active' },
): Buffer | null {
  return decrypt(wrapping, id.subarray(0, NONCE_BYTES), Buffer.concat([id, owner]), wrapped);
}

function encrypt(key: KeyObject, nonce: Buffer, about: Buffer, plain: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(about);
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: KeyObject, nonce: Buffer, about: Buffer, data: Buffer): Buffer | null {
  const end = data.length - TAG;
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG });
  decipher.setAAD(about).setAuthTag(data.subarray(end));
  const plain = decipher.update(data.subarray(0, end));
  try {
    decipher.final();
    return plain;
  } catch {
    return null;
  }
}

function at(bytes: Buffer, { from, to }: { readonly from: number; readonly to: number }): Buffer {
  return bytes.subarray(from, to);
}

/** Tells what a power cut tore from what was written; against changing on purpose the tags inside guard. */
function checked(bytes: Buffer): Buffer {
  bytes.writeUInt32LE(crc32(bytes.subarray(0, CRC)), CRC);
  return bytes;
}

function isSound(bytes: Buffer): boolean {
  return bytes.readUInt32LE(CRC) === crc32(bytes.subarray(0, CRC)) && bytes[0] !== 0;
}
