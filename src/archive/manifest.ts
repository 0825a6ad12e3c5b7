import { isCompacted } from '../core/archive.ts';
import {
  isCompaction,
  type CompactionLine,
  type ErasureLine,
  type ManifestLine,
} from '../core/archive-manifest.ts';
import { COMPACTIONS } from './segments.ts';
import { chainsOf, readChain, type ChainFacts } from './chains.ts';
import { isUnfinished } from './file-kind.ts';
import { type LineCounts, type Trust } from './judge.ts';
import type { ArchiveListing } from './place.ts';
import type { Difference } from './report.ts';

/** A manifest after it was read. */
export interface Manifest {
  /** The newest line of each file, also of files that an erasure has removed. */
  readonly entries: ReadonlyMap<string, ManifestLine>;
  /** Files with an older line that differs from the newest. */
  readonly superseded: ReadonlySet<string>;
  /** Lines of compactions, by the file that was made. */
  readonly compactions: ReadonlyMap<string, CompactionLine>;
  /** Erasures of files that were listed again afterwards. */
  readonly returned: ReadonlyMap<string, ErasureLine>;
  /** One in a folder, one for each writer in a store. */
  readonly chains: readonly ChainFacts[];
  readonly signatures: LineCounts;
  /** Whether no chain is broken. */
  readonly isSound: boolean;
  readonly differences: readonly Difference[];
}

export interface ManifestOptions {
  /** Null checks signatures only where that is cheap. */
  readonly trust?: Trust | null;
  /** Called for every line that counts, older ones of a file first. */
  readonly onEntry?: (entry: ManifestLine) => void;
}

/** Reads a manifest and checks its chains. One changed line is one difference; a refused erasure does not count. */
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
  const differences = [...chains.flatMap((chain) => chain.differences), ...forgedChains(chains)];
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

/** Finds the line of each file that counts. */
class Entries {
  readonly newest = new Map<string, ManifestLine>();
  readonly superseded = new Set<string>();
  readonly returned = new Map<string, ErasureLine>();
  readonly compactions = new Map<string, CompactionLine>();
  /** Listed files with the name of a compaction's file. */
  readonly #listed = new Set<string>();
  readonly #onEntry: ManifestOptions['onEntry'];
  /** Erasures in a store: each writer has its own chain, so only the times give the order. */
  readonly #erasures: ErasureLine[] = [];

  constructor(onEntry: ManifestOptions['onEntry']) {
    this.#onEntry = onEntry;
  }

  /** @param writer of the chain; null for a folder's manifest */
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
    // An erasure can list a compaction's file that the compaction itself did not list: it does not count.
    for (const file of this.newest.keys())
      if (isCompacted(file) && !this.#listed.has(file)) this.newest.delete(file);
  }

  #take(entry: ManifestLine, isRefused: boolean): void {
    const { file, sha256 } = entry;
    // A finished file is listed under another name.
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

/** Chains made without the key: unsigned beside signed ones, or copies of others. */
function forgedChains(chains: readonly ChainFacts[]): Difference[] {
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
