const SEED = 0x9747b28c;
const MIX = 0x5bd1e995;
const SHIFT = 24;

/** The partition that Java's clients choose for a key: other producers put a user's messages into the same one. */
export function partitionOf(key: Buffer, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions;
}

/** MurmurHash2 as the Java client has it. https://kafka.apache.org/protocol#protocol_partitioning */
function murmur2(bytes: Buffer): number {
  const { length } = bytes;
  const whole = length & ~3;
  let hash = SEED ^ length;
  for (let at = 0; at < whole; at += 4) {
    let word = Math.imul(bytes.readInt32LE(at), MIX);
    word = Math.imul(word ^ (word >>> SHIFT), MIX);
    hash = Math.imul(hash, MIX) ^ word;
  }
  if (length > whole) {
    hash ^= bytes.readUIntLE(whole, length - whole);
    hash = Math.imul(hash, MIX);
  }
  hash = Math.imul(hash ^ (hash >>> 13), MIX);
  return hash ^ (hash >>> 15);
}
