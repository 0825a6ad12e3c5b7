import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Ownership } from '../../src/core/erasure.ts';
import type { KeyRing } from '../../src/seal/key-ring.ts';
import { KeyStore, type OwnedKey } from '../../src/seal/key-store.ts';

export const MASTER = Buffer.alloc(32, 1);
export const MASTER_TEXT = `mrk_${MASTER.toString('base64')}`;
export const OTHER = Buffer.alloc(32, 2);

export function owner(n: number, team: string | null = 'team-1') {
  return { team, user: `user-${n}`, clientUser: `client-${n}` };
}

export function subject(id: string, by: 'user' | 'client_user' = 'user', team: string | null = null) {
  return { request: randomBytes(4).toString('hex'), by, id, team };
}

/** What the keys on disk are to somebody who opens the store now. */
export async function ringOf(path: string, master = MASTER): Promise<KeyRing> {
  return await KeyStore.read(path, master);
}

/** Keys that nobody holds on to. */
export function keysOf(store: KeyStore, owners: readonly Ownership[]): Promise<readonly OwnedKey[]> {
  return store.lend(owners, (keys) => Promise.resolve(keys));
}

/** A mark over a key, as somebody makes it who has the disk: with every checksum right. */
export function forgedMark(id: Buffer): Buffer {
  const slot = Buffer.alloc(128);
  Buffer.concat([Buffer.of(2, 0, 0, 0), id, Buffer.of(1, 0, 0, 0, 0, 0, 0, 0), randomBytes(32)]).copy(slot);
  return checked(slot);
}

/** The same slot or header, with its checksum right. */
export function checked(slot: Buffer): Buffer {
  slot.writeUInt32LE(crc32(slot.subarray(0, 124)), 124);
  return slot;
}
