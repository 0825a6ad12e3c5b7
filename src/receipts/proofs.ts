import { nodeHash, splitOf } from './hashing.ts';

/**
 * Whether a leaf is in a tree: the root that its proof leads to (RFC 6962, 2.1.1), to be compared with the signed one.
 * @param leaf its hash
 * @returns null when the proof has another length than such a tree asks for
 */
export function rootOfInclusion(
  leaf: Buffer,
  index: number,
  size: number,
  proof: readonly Buffer[],
): Buffer | null {
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) return null;
  const path = sidesOf(index, size);
  if (path.length !== proof.length) return null;
  return proof.reduce(
    (hash, sibling, at) => (path[at] === 'left' ? nodeHash(sibling, hash) : nodeHash(hash, sibling)),
    leaf,
  );
}

/** On which side each sibling stands, from the leaf up. */
function sidesOf(index: number, size: number): ('left' | 'right')[] {
  const sides: ('left' | 'right')[] = [];
  for (let [at, count] = [index, size]; count > 1;) {
    const split = splitOf(count);
    if (at < split) {
      sides.push('right');
      count = split;
    } else {
      sides.push('left');
      at -= split;
      count -= split;
    }
  }
  return sides.toReversed();
}

/** Hash of the leaves from `from` up to `to` (excluded), as a subtree has them. */
export type RangeHash = (from: number, to: number) => Promise<Buffer>;

/** The siblings on the way from a leaf to the root of a tree of `size` leaves, from the leaf up. */
export async function inclusionProof(index: number, size: number, range: RangeHash): Promise<Buffer[]> {
  const siblings: Promise<Buffer>[] = [];
  for (let [from, to] = [0, size]; to - from > 1;) {
    const middle = from + splitOf(to - from);
    if (index < middle) {
      siblings.push(range(middle, to));
      to = middle;
    } else {
      siblings.push(range(from, middle));
      from = middle;
    }
  }
  return (await Promise.all(siblings)).toReversed();
}
