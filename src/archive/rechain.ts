import {
  formatManifestLine,
  hashLine,
  type ManifestLine,
  type NewManifestLine,
} from '../core/archive-manifest.ts';
import type { Signer } from '../core/signature.ts';
import type { FileFacts } from './facts.ts';
import type { StoredLine } from './manifest.ts';

/** One line of the manifest as it should be. */
export interface ChainedLine {
  readonly text: string;
  readonly entry: ManifestLine;
  /**
   * `kept`: as it stands. `restored`: made anew from its file, and proven by the hash in the line after it. `linked`:
   * what it says is kept, its link is new.
   */
  readonly how: 'kept' | 'restored' | 'linked';
  /** Its number in the manifest as it stands; null for one that was not there. */
  readonly from: number | null;
}

/** A manifest line that can be understood. */
type Understood = StoredLine & { readonly entry: ManifestLine };

/**
 * Puts the lines of a damaged manifest back in a chain. Lines that were only reordered are put in the order their links
 * tell. A line that was changed or removed is made again from its file, where the next line's hash proves that it was
 * just so. Where neither helps, the lines that are left follow with new links and the time of the repair.
 * @param files facts by name
 * @param at time of the repair, ISO 8601
 * @param signer signs what is made again or linked anew; null for a manifest without signatures
 */
export function rechain(
  lines: readonly StoredLine[],
  files: ReadonlyMap<string, FileFacts>,
  at: string,
  signer: Signer | null,
): ChainedLine[] {
  const left = new Map<string, Understood>();
  const followers = new Map<string, string[]>();
  for (const line of lines) {
    if (!isUnderstood(line)) continue;
    const hash = hashLine(line.text);
    if (!left.has(hash))
      followers.set(line.entry.previous, [...(followers.get(line.entry.previous) ?? []), hash]);
    left.set(hash, line);
  }
  const isLost = (hash: string): boolean => followers.has(hash) && !left.has(hash);
  const chain: ChainedLine[] = [];
  let head = hashLine('');
  for (;;) {
    const hashes = (followers.get(head) ?? []).filter((hash) => left.has(hash));
    const followed = hashes.find((hash) => followers.has(hash));
    const restored = followed === undefined ? restore(files, head, isLost, signer) : null;
    if (restored !== null) {
      // What stands in its place says something that the next line does not vouch for.
      for (const hash of hashes) left.delete(hash);
      chain.push(restored);
      head = hashLine(restored.text);
      continue;
    }
    const hash = followed ?? hashes[0] ?? '';
    const line = left.get(hash);
    if (line === undefined) break;
    left.delete(hash);
    chain.push({ text: line.text.toString(), entry: line.entry, how: 'kept', from: line.number });
    head = hash;
  }
  for (const { text, entry, number } of left.values()) {
    const {
      previous: _,
      signed_by: _by,
      signature: _signature,
      ...said
    } = JSON.parse(text.toString()) as ManifestLine & { signed_by?: string; signature?: string };
    const linked = formatManifestLine({ ...said, repaired_at: at }, head, signer);
    chain.push({ text: linked, entry, how: 'linked', from: number });
    head = hashLine(linked);
  }
  return chain;
}

/** The line a writer would have written for a file. */
export function fileLineOf(file: string, facts: FileFacts): NewManifestLine {
  const { records, bytes, sha256, first, last, types } = facts;
  const epoch = new Date(0).toISOString();
  return {
    file,
    records,
    bytes,
    sha256,
    first_received_at: first || epoch,
    last_received_at: last || epoch,
    types: Object.fromEntries(types),
  };
}

/** The line of the file that, linked to `previous`, has a hash that another line asks for. */
function restore(
  files: ReadonlyMap<string, FileFacts>,
  previous: string,
  isLost: (hash: string) => boolean,
  signer: Signer | null,
): ChainedLine | null {
  for (const [file, facts] of files) {
    const line = fileLineOf(file, facts);
    // It may be of before lines were signed.
    for (const by of signer === null ? [null] : [signer, null]) {
      const text = formatManifestLine(line, previous, by);
      if (isLost(hashLine(text)))
        return { text, entry: { ...line, previous } as ManifestLine, how: 'restored', from: null };
    }
  }
  return null;
}

function isUnderstood(line: StoredLine): line is Understood {
  return line.entry !== null;
}
