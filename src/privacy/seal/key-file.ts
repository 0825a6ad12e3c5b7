import { createHmac, createSecretKey, randomBytes, timingSafeEqual, type KeyObject } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { decrypt, encrypt } from './aes-gcm.ts';
import { keyFor } from './master-key.ts';

/**
 * The layout of a key file: a header, and slots of the same size with a key each, which can be overwritten. Sizes in bytes:
 *
 * header:    magic 8 · salt 16 · nonce 12 · look-up key, wrapped 32+16 · zeros · CRC-32 4
 * slot:      state 1 · zeros 3 · key id 16 · owner 48 · key, wrapped 32+16 · zeros · CRC-32 4
 * tombstone: state 1 · zeros 3 · key id 16 · epoch 8 · HMAC-SHA-256 of id and epoch 32 · zeros · CRC-32 4
 *
 * `owner` is three keyed hashes of 16 bytes: of team, user and client user, zeros for one that is absent. A tombstone
 * overwrites the slot of a destroyed key. Epochs count the tombstones of a file from 1, so that a removed one leaves a gap. The
 * last digit of the magic is the number of this format.
 */
export const SLOT = 128;
const MAGIC = Buffer.from('MILLKEY2');
const SALT = { from: 8, to: 24 } as const;
const NONCE = { from: 24, to: 36 } as const;
const LOOKUP = { from: 36, to: 84 } as const;
const ID = { from: 4, to: 20 } as const;
const OWNER = { from: 20, to: 68 } as const;
const WRAPPED = { from: 68, to: 116 } as const;
const EPOCH = { from: 20, to: 28 } as const;
const MAC = { from: 28, to: 60 } as const;
const CRC = SLOT - 4;
const ACTIVE = 1;
const DESTROYED = 2;
const NONCE_BYTES = NONCE.to - NONCE.from;

/** A slot with a key; its buffers are views into the slot. */
export interface ActiveSlot {
  readonly state: 'active';
  readonly id: Buffer;
  readonly owner: Buffer;
  readonly wrapped: Buffer;
}

/** A tombstone. */
export interface DestroyedSlot {
  readonly state: 'destroyed';
  readonly id: Buffer;
  readonly epoch: number;
}

/** `free` was never written. */
type Slot = ActiveSlot | DestroyedSlot | { readonly state: 'free' | 'damaged' };

/** The keys of a file itself. */
export interface FileKeys {
  /** Wraps the keys in slots. */
  readonly wrapping: KeyObject;
  /** Hashes owners. */
  readonly lookup: KeyObject;
  /** Authenticates tombstones. */
  readonly tombstone: KeyObject;
  /** Id of the store, which stays when its master key changes. */
  readonly store: string;
}

/** The header of a new file, and its keys. @param lookup that of the file it replaces */
export function newHeader(
  master: Buffer,
  lookup: KeyObject = createSecretKey(randomBytes(32)),
): { header: Buffer; keys: FileKeys } {
  const header = Buffer.alloc(SLOT);
  MAGIC.copy(header);
  randomBytes(NONCE.to - SALT.from).copy(header, SALT.from);
  const wrapping = keyFor('wrapping', master, at(header, SALT));
  const about = at(header, { from: 0, to: NONCE.to });
  encrypt(wrapping, at(header, NONCE), about, lookup.export()).copy(header, LOOKUP.from);
  return { header: checked(header), keys: keysOf(master, header, wrapping, lookup) };
}

function keysOf(master: Buffer, header: Buffer, wrapping: KeyObject, lookup: KeyObject): FileKeys {
  const store = createHmac('sha256', lookup).update('store').digest('hex').slice(0, 16);
  return { wrapping, lookup, tombstone: keyFor('tombstone', master, at(header, SALT)), store };
}

/** The keys in a header; null when the master key is another. @throws Error when it is not a header, or of another format */
export function openHeader(header: Buffer, master: Buffer): FileKeys | null {
  const [, format] = /^MILLKEY(\d)/.exec(header.toString('latin1', 0, MAGIC.length)) ?? [];
  if (header.length < SLOT || format === undefined || !isSound(header))
    throw new Error('keys.bin is not a key file, or its first bytes are damaged');
  if (!at(header, { from: 0, to: MAGIC.length }).equals(MAGIC))
    throw new Error(`keys.bin has format ${format}; this millrace reads 2`);
  const wrapping = keyFor('wrapping', master, at(header, SALT));
  const about = at(header, { from: 0, to: NONCE.to });
  const lookup = decrypt(wrapping, at(header, NONCE), about, at(header, LOOKUP));
  return lookup === null ? null : keysOf(master, header, wrapping, createSecretKey(lookup));
}

export function readSlot(bytes: Buffer): Slot {
  if (!isSound(bytes)) return { state: bytes.every((byte) => byte === 0) ? 'free' : 'damaged' };
  const id = at(bytes, ID);
  if (bytes[0] === DESTROYED) {
    // An epoch above the safe integers is forged; its MAC shows that.
    return { state: 'destroyed', id, epoch: Number(bytes.readBigUInt64LE(EPOCH.from)) };
  }
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
  // The id is random and the wrapping key the file's own, so the id's first bytes are a nonce that does not repeat.
  const nonce = id.subarray(0, NONCE_BYTES);
  encrypt(wrapping, nonce, Buffer.concat([id, owner]), key).copy(slot, WRAPPED.from);
  return checked(slot);
}

/** A tombstone for a key. It has the id, so that opening a record can say that its key was destroyed. */
export function destroyedSlot({ tombstone }: Pick<FileKeys, 'tombstone'>, id: Buffer, epoch: number): Buffer {
  const slot = Buffer.alloc(SLOT);
  slot[0] = DESTROYED;
  id.copy(slot, ID.from);
  slot.writeBigUInt64LE(BigInt(epoch), EPOCH.from);
  macOf(tombstone, slot).copy(slot, MAC.from);
  return checked(slot);
}

/** Whether a tombstone was made with the master key. */
export function isTombstone({ tombstone }: Pick<FileKeys, 'tombstone'>, bytes: Buffer): boolean {
  return timingSafeEqual(at(bytes, MAC), macOf(tombstone, bytes));
}

function macOf(key: KeyObject, slot: Buffer): Buffer {
  return createHmac('sha256', key)
    .update(at(slot, { from: ID.from, to: EPOCH.to }))
    .digest();
}

/** Null when the key was wrapped with another key, or for another owner. */
export function unwrapKey(wrapping: KeyObject, { id, owner, wrapped }: ActiveSlot): Buffer | null {
  return decrypt(wrapping, id.subarray(0, NONCE_BYTES), Buffer.concat([id, owner]), wrapped);
}

function at(bytes: Buffer, { from, to }: { readonly from: number; readonly to: number }): Buffer {
  return bytes.subarray(from, to);
}

/** Adds the CRC, which detects a slot torn by a power cut; changes on purpose are detected by the tags inside. */
function checked(bytes: Buffer): Buffer {
  bytes.writeUInt32LE(crc32(bytes.subarray(0, CRC)), CRC);
  return bytes;
}

function isSound(bytes: Buffer): boolean {
  return bytes.readUInt32LE(CRC) === crc32(bytes.subarray(0, CRC)) && bytes[0] !== 0;
}
