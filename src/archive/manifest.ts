import { isCompacted } from '../core/archive.ts';
import {
  isCompaction,
  type CompactionLine,
  type ErasureLine,
  type ManifestLine,
} from '../core/archive-manifest.ts';
import { COMPACTIONS } from '../core/archive-segments.ts';
import { chainsOf, readChain, type ChainFacts } from './chains.ts';
import { isUnfinished } from './file-kind.ts';
import { type LineCounts, type Trust } from './judge.ts';
import type { ArchiveListing } from './place.ts';
import type { Difference } from './report.ts';

/** A manifest as it stands, with what is wrong with it. */
export interface Manifest {
  /** By file; the newest line of a file counts, which may be one that says that an erasure removed it. */
  readonly entries: ReadonlyMap<string, ManifestLine>;
  /** Files with a line before the newest that says something else. */
  readonly superseded: ReadonlySet<string>;
  /** Files that compactions made, whatever has become of them since. */
  readonly compactions: ReadonlyMap<string, CompactionLine>;
  /** Files listed anew after an erasure had changed them. */
  readonly returned: ReadonlyMap<string, ErasureLine>;
  /** One in a folder, one for each writer in a store. */
  readonly chains: readonly ChainFacts[];
  readonly signatures: LineCounts;
  /** Whether all lines are there and follow from each other. */
  readonly isSound: boolean;
  readonly differences: readonly Difference[];
}

export interface ManifestOptions {
  /** What its lines are judged by; null where a cheap look is enough. */
  readonly trust?: Trust | null;
  /** Told of every line that counts, the older ones of a file before the newer. */
  readonly onEntry?: (entry: ManifestLine) => void;
}

/**
 * Reads a manifest and checks its chains. After a broken link a chain is followed from the line as it stands, so that one
 * changed line is one difference. An erasure that is refused does not count: the line before it of its file does.
 */
export async function readManifest(
  { place, manifest: files }: Pick<ArchiveListing, 'place' | 'manifest'>,
  { trust = null, onEntry }: ManifestOptions = {},
): Promise<Manifest> {
  const entries = new Entries(onEntry);
  const chains: ChainFacts[] = [];
  place.expect(files);
  for (const chain of chainsOf(files)) {
    const { writer } = chain;
    chains.push(
      await readChain(place, chain, trust, (entry, refused) => entries.take(entry, refused, writer)),
    );
  }
  entries.finish();
  const differences = [...chains.flatMap((chain) => chain.differences), ...strangers(chains)];
  const { newest, superseded, returned, compactions } = entries;
  return {
    entries: newest,
    superseded,
    returned,
    compactions,
    chains,
    signatures: sumOf(chains),
    isSound: chains.every(({ brokenAt }) => brokenAt === null),
    differences,
  };
}

/** Which line of each file counts. */
class Entries {
  readonly newest = new Map<string, ManifestLine>();
  readonly superseded = new Set<string>();
  readonly returned = new Map<string, ErasureLine>();
  readonly compactions = new Map<string, CompactionLine>();
  /** Of the files that are called as a compaction's are, those that a line lists. */
  readonly #listed = new Set<string>();
  readonly #onEntry: ManifestOptions['onEntry'];
  /** Of writers to a store: each has a chain of its own, so only their times say which came first. */
  readonly #erasures: ErasureLine[] = [];

  constructor(onEntry: ManifestOptions['onEntry']) {
    this.#onEntry = onEntry;
  }

  /** @param writer of the chain; null for a folder's own */
  take(entry: ManifestLine, isRefused: boolean, writer: string | null): void {
    if (isCompaction(entry) && !isRefused && (writer === null || writer === COMPACTIONS))
      this.compactions.set(entry.file, entry);
    const isErasure = 'erasure' in entry;
    if (!isErasure && isCompacted(entry.file)) this.#listed.add(entry.file);
    if (isErasure && writer !== null) {
      if (!isRefused) this.#erasures.push(entry);
      return;
    }
    this.#take(entry, isRefused);
  }

  finish(): void {
    const inTurn = this.#erasures.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
    for (const entry of inTurn) this.#take(entry, false);
    // An erasure lists what it takes out of the file of a compaction that was ended before its own line: it does not count.
    for (const file of this.newest.keys())
      if (isCompacted(file) && !this.#listed.has(file)) this.newest.delete(file);
  }

  #take(entry: ManifestLine, isRefused: boolean): void {
    const { file, sha256 } = entry;
    // What an erasure took out of an unfinished file: the file is listed when it is finished, under another name.
    if (isUnfinished(file)) {
      if (!isRefused) this.#onEntry?.(entry);
      return;
    }
    const before = this.newest.get(file);
    const isErasure = 'erasure' in entry;
    const counts = !isRefused || !isErasure;
    if (counts && before !== undefined && before.sha256 !== sha256) this.superseded.add(file);
    if (before !== undefined && 'erasure' in before && !isErasure) this.returned.set(file, before);
    if (counts) this.newest.set(file, entry);
    if (!isRefused) this.#onEntry?.(entry);
  }
}

/** Chains that who has the store and not the key has made: of nothing signed, or of lines of another one. */
function strangers(chains: readonly ChainFacts[]): Difference[] {
  const isSigned = chains.some(({ signatures }) => signatures.signed > 0);
  const firsts = new Map<string, string>();
  return chains.flatMap(({ name, lines, signatures, hashes }): Difference[] => {
    const [first = ''] = hashes.keys();
    const other = firsts.get(first);
    firsts.set(first, name);
    if (other !== undefined && lines > 0)
      return [{ code: 'line_forged', file: name, line: null, detail: `is a copy of ${other}` }];
    if (!isSigned || lines === 0 || signatures.signed > 0) return [];
    return [
      {
        code: 'line_unsigned',
        file: name,
        line: null,
        detail: 'no line of it is signed, and those of others are',
      },
    ];
  });
}

function sumOf(chains: readonly ChainFacts[]): LineCounts {
  const sum: LineCounts = { signed: 0, unsigned: 0, keys: new Map() };
  for (const { signatures } of chains) {
    sum.signed += signatures.signed;
    sum.unsigned += signatures.unsigned;
    for (const [key, known] of signatures.keys) sum.keys.set(key, known);
  }
  return sum;
}
