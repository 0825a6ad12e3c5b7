import { leafHash, nodeHash, splitOf } from './hashing.ts';
import { openCheckpoint, type NoteVerifier, type TreeHead } from './note.ts';
import type { TreeReader } from './tiles.ts';

/** C2SP tlog-proof: proves that a log has an entry. */
export interface Proof {
  readonly index: number;
  /** Of the siblings on the path to the root, from the leaf up. */
  readonly hashes: readonly Buffer[];
  /** A signed note. */
  readonly checkpoint: string;
}

const HEADER = 'c2sp.org/tlog-proof@v1';
const HASH = /^[A-Za-z0-9+/]{43}=$/;

export function formatProof({ index, hashes, checkpoint }: Proof): string {
  const lines = [HEADER, `index ${index}`, ...hashes.map((one) => one.toString('base64'))];
  return `${lines.join('\n')}\n\n${checkpoint}`;
}

/** @throws RangeError when the text is not a proof */
export function parseProof(text: string): Proof {
  const end = text.indexOf('\n\n');
  const [header, ...lines] = text.slice(0, Math.max(0, end)).split('\n');
  // The salt, where it is disclosed.
  if (lines[0]?.startsWith('extra ') === true) lines.shift();
  const [, index = ''] = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? '') ?? [];
  if (header !== HEADER || index === '' || !lines.every((line) => HASH.test(line)))
    throw new RangeError('is not a proof of a log (c2sp.org/tlog-proof@v1)');
  const hashes = lines.map((line) => Buffer.from(line, 'base64'));
  return { index: Number(index), hashes, checkpoint: text.slice(end + 2) };
}

/** The head of the log that has the entry, or why the proof does not prove that. */
export type Verdict =
  { readonly ok: true; readonly head: TreeHead } | { readonly ok: false; readonly reason: string };

/** Whether an entry is in the log that the key belongs to. */
export function verifyProof(entry: Buffer, proof: Proof, verifier: NoteVerifier): Verdict {
  const head = openCheckpoint(proof.checkpoint, verifier);
  if (head === null)
    return { ok: false, reason: `its checkpoint is not signed by the key of ${verifier.name}` };
  const root = rootOfInclusion(leafHash(entry), proof.index, head.size, proof.hashes);
  if (root === null) return { ok: false, reason: `it does not match a log of ${head.size} entries` };
  return root.equals(head.root)
    ? { ok: true, head }
    : { ok: false, reason: `the event is not entry ${proof.index} of the log` };
}

/** The root that a proof leads to (RFC 6962, 2.1.1); null when it has too many or too few hashes for the tree. */
function rootOfInclusion(leaf: Buffer, index: number, size: number, proof: readonly Buffer[]): Buffer | null {
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) return null;
  const siblings = siblingsOf(index, size);
  if (siblings.length !== proof.length) return null;
  return proof.reduce(
    (hash, sibling, at) =>
      siblings[at]?.isLeft === true ? nodeHash(sibling, hash) : nodeHash(hash, sibling),
    leaf,
  );
}

/** Hashes of the siblings on the path from a leaf to the root of a tree, from the leaf up. */
export function inclusionProof(index: number, tree: TreeReader): Promise<Buffer[]> {
  return Promise.all(siblingsOf(index, tree.size).map(({ from, to }) => tree.range(from, to)));
}

/** Subtrees beside the path from a leaf to the root, from the leaf up; each begins at the leaf `from` and ends before `to`. */
function siblingsOf(index: number, size: number) {
  const siblings: { isLeft: boolean; from: number; to: number }[] = [];
  for (let [from, to] = [0, size]; to - from > 1;) {
    const middle = from + splitOf(to - from);
    const isLeft = index >= middle;
    siblings.push(isLeft ? { isLeft, from, to: middle } : { isLeft, from: middle, to });
    [from, to] = isLeft ? [middle, to] : [from, middle];
  }
  return siblings.toReversed();
}
