import { leafHash } from './hashing.ts';
import { openCheckpoint, type NoteVerifier, type TreeHead } from './note.ts';
import { rootOfInclusion } from './proofs.ts';

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
