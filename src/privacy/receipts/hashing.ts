import { hash } from 'node:crypto';

/** Bytes of a hash in the Merkle tree of RFC 6962: SHA-256, behind a byte 0 for leaves and 1 for nodes. */
export const HASH_BYTES = 32;

/** What is hashed, in memory that is used again: there are two hashes for each event. */
const LEAF = Buffer.alloc(1 + HASH_BYTES);
const NODE = Buffer.alloc(1 + 2 * HASH_BYTES, Buffer.of(1));

/** Root of a tree without leaves. */
export const EMPTY_ROOT = sha256(Buffer.alloc(0));

export function sha256(bytes: Uint8Array): Buffer {
  return hash('sha256', bytes, 'buffer');
}

export function leafHash(entry: Uint8Array): Buffer {
  return sha256(Buffer.concat([Buffer.of(0), entry]));
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return sha256(Buffer.concat([Buffer.of(1), left, right]));
}

/** Writes the hash of the entry at `from`. @throws RangeError when there is no whole entry */
export function writeLeafHash(entries: Buffer, from: number, to: Buffer, at: number): void {
  writeHash(LEAF, entries, from, to, at);
}

/** Writes the hash of the two hashes at `from`. @throws RangeError when there are not two */
export function writeNodeHash(pair: Buffer, from: number, to: Buffer, at: number): void {
  writeHash(NODE, pair, from, to, at);
}

/** A hash as a latin1 string takes a third of the time of one as a buffer, which allocates. */
function writeHash(input: Buffer, bytes: Buffer, from: number, to: Buffer, at: number): void {
  const wanted = input.length - 1;
  if (bytes.copy(input, 1, from, from + wanted) !== wanted)
    throw new RangeError(`there are no hashes in ${bytes.length} bytes at ${from}`);
  to.write(hash('sha256', input, 'binary'), at, HASH_BYTES, 'latin1');
}

/** The largest power of two below `count`, which is at least 2: the leaves left of a tree's split. */
export function splitOf(count: number): number {
  let split = 1;
  // Not by shifts: there may be more than 2^31 leaves.
  while (split * 2 < count) split *= 2;
  return split;
}
