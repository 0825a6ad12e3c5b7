import { leafHash, nodeHash, splitOf } from './hashing.ts';
import { openCheckpoint, type NoteVerifier, type TreeHead } from './note.ts';

/** C2SP tlog-proof: proves that a log has an entry. */
export interface Proof {
  /** The salt; empty when it is not disclosed. */
  readonly extra: Buffer;
  readonly index: number;
  /** Of the siblings on the path to the root, from the leaf up. */
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

/** @throws RangeError when the text is not a proof */
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

/** Hash of the subtree of the leaves from `from` up to `to` (excluded). */
type RangeHash = (from: number, to: number) => Promise<Buffer>;

/** Hashes of the siblings on the path from a leaf to the root of a tree of `size` leaves, from the leaf up. */
export function inclusionProof(index: number, size: number, range: RangeHash): Promise<Buffer[]> {
  return Promise.all(siblingsOf(index, size).map(({ from, to }) => range(from, to)));
}

/** A subtree beside the path from a leaf to the root. */
interface Sibling {
  readonly isLeft: boolean;
  readonly from: number;
  readonly to: number;
}

/** From the leaf up. */
function siblingsOf(index: number, size: number): Sibling[] {
  const siblings: Sibling[] = [];
  for (let [from, to] = [0, size]; to - from > 1;) {
    const middle = from + splitOf(to - from);
    const isLeft = index >= middle;
    siblings.push(isLeft ? { isLeft, from, to: middle } : { isLeft, from: middle, to });
    [from, to] = isLeft ? [middle, to] : [from, middle];
  }
  return siblings.toReversed();
}
