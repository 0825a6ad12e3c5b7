import { leafHash, nodeHash, splitOf } from './hashing.ts';
import { openCheckpoint, type NoteVerifier, type TreeHead } from './note.ts';

/** C2SP tlog-proof: index, the way to the root, and the checkpoint; beside it the salt. */
export interface Proof {
  readonly extra: Buffer;
  readonly index: number;
  readonly hashes: readonly Buffer[];
  /** A signed note. */
  readonly checkpoint: string;
}

const HEADER = 'c2sp.org/tlog-proof@v1';
const HASH = /^[A-Za-z0-9+/]{43}=$/;

export function formatProof({ extra, index, hashes, checkpoint }: Proof): string {
  const lines = [
    HEADER,
    ...(extra.length === 0 ? [] : [`extra ${extra.toString('base64')}`]),
    `index ${index}`,
    ...hashes.map((one) => one.toString('base64')),
  ];
  return `${lines.join('\n')}\n\n${checkpoint}`;
}

/** @throws RangeError when it is none */
export function parseProof(text: string): Proof {
  const end = text.indexOf('\n\n');
  const [header, ...lines] = text.slice(0, Math.max(0, end)).split('\n');
  const extra = lines[0]?.startsWith('extra ') === true ? String(lines.shift()).slice(6) : '';
  const [, index = ''] = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? '') ?? [];
  if (header !== HEADER || index === '' || !lines.every((line) => HASH.test(line)))
    throw new RangeError('is not a proof of a log (c2sp.org/tlog-proof@v1)');
  const hashes = lines.map((line) => Buffer.from(line, 'base64'));
  return {
    extra: Buffer.from(extra, 'base64'),
    index: Number(index),
    hashes,
    checkpoint: text.slice(end + 2),
  };
}

/** What a proof says, or why it says nothing. */
export type Verdict =
  { readonly ok: true; readonly head: TreeHead } | { readonly ok: false; readonly reason: string };

/** Whether an entry is in the log that the key is of. */
export function verifyProof(entry: Buffer, proof: Proof, verifier: NoteVerifier): Verdict {
  const head = openCheckpoint(proof.checkpoint, verifier);
  if (head === null)
    return { ok: false, reason: `its checkpoint is not signed by the key of ${verifier.name}` };
  const root = rootOfInclusion(leafHash(entry), proof.index, head.size, proof.hashes);
  if (root === null) return { ok: false, reason: `it does not fit a log of ${head.size} entries` };
  return root.equals(head.root)
    ? { ok: true, head }
    : { ok: false, reason: `the event is not entry ${proof.index} of the log` };
}

/**
 * Whether a leaf is in a tree: the root that its proof leads to (RFC 6962, 2.1.1), to be compared with the signed one.
 * @param leaf its hash
 * @returns null when the proof has another length than such a tree asks for
 */
function rootOfInclusion(leaf: Buffer, index: number, size: number, proof: readonly Buffer[]): Buffer | null {
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
type RangeHash = (from: number, to: number) => Promise<Buffer>;

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
