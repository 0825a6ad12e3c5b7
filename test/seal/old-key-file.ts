import { createCipheriv, createHmac, createSecretKey, hkdfSync, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { owner } from './support.ts';

/**
 * A key file as it was written before its marks of destroyed keys were vouched for, made by hand: users numbered from 0,
 * and those to be marked as destroyed.
 */
export function oldKeyFile(master: Buffer, users: number, destroyed: readonly number[]): Buffer {
  const salt = randomBytes(16);
  const lookup = randomBytes(32);
  const wrapping = Buffer.from(hkdfSync('sha256', master, salt, 'millrace key store 1', 32));
  const header = slot(Buffer.from('MILLKEY1'), salt, randomBytes(12));
  seal(wrapping, header.subarray(24, 36), header.subarray(0, 36), lookup).copy(header, 36);
  const slots = Array.from({ length: users }, (_, n) => {
    const id = randomBytes(16);
    if (destroyed.includes(n)) return slot(Buffer.of(2, 0, 0, 0), id);
    const { team, user, clientUser } = owner(n);
    const whose = Buffer.concat([
      hashed(lookup, 'team', team ?? ''),
      hashed(lookup, 'user', user),
      hashed(lookup, 'client', clientUser),
    ]);
    return slot(
      Buffer.of(1, 0, 0, 0),
      id,
      whose,
      seal(wrapping, id.subarray(0, 12), Buffer.concat([id, whose]), randomBytes(32)),
    );
  });
  return Buffer.concat([header, ...slots].map(checked));
}

/** A mark over a key, as somebody makes it who has the disk: with every checksum right. */
export function forgedMark(id: Buffer): Buffer {
  return checked(slot(Buffer.of(2, 0, 0, 0), id, Buffer.of(1, 0, 0, 0, 0, 0, 0, 0), randomBytes(32)));
}

function slot(...parts: Buffer[]): Buffer {
  const bytes = Buffer.alloc(128);
  Buffer.concat(parts).copy(bytes);
  return bytes;
}

function checked(bytes: Buffer): Buffer {
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 124)), 124);
  return bytes;
}

function hashed(lookup: Buffer, field: string, id: string): Buffer {
  return createHmac('sha256', createSecretKey(lookup)).update(`${field}\0${id}`).digest().subarray(0, 16);
}

function seal(key: Buffer, nonce: Buffer, about: Buffer, plain: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(about);
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}
