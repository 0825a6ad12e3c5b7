import { MANIFEST, PART_EXTENSION } from '../core/archive.ts';
import type { ManifestLine } from '../core/archive-manifest.ts';
import { isStoreUrl } from '../core/place.ts';
import type { FileFacts } from './facts.ts';
import { TEMPORARY_EXTENSION, type ArchiveListing } from './place.ts';
import type { Manifest } from './manifest.ts';
import type { DifferenceCode, ManifestReport, VerifyTally } from './report.ts';
import { hashLine } from '../lib/chained-log.ts';

/** A head that the manifest must hold. */
export interface ExpectedHead {
  readonly head: string;
  /** Where it was noted; null for a head that was given. */
  readonly where: string | null;
}

/** @param head all of a hash, or its first digits */
function holds({ chains }: Manifest, head: string): boolean {
  return chains.some(
    ({ hashes }) => hashes.has(head) || [...hashes.keys()].some((hash) => hash.startsWith(head)),
  );
}

/** Head of an empty manifest, which every manifest holds. */
const NOTHING = hashLine('');

/** Reports the faults of the manifest, and notes on its lines. */
export function reportManifest(
  manifest: Manifest | null,
  tally: VerifyTally,
  { heads = [], signed = false }: { readonly heads?: readonly ExpectedHead[]; readonly signed?: boolean },
): void {
  const differ = (code: DifferenceCode, detail: string): void => tally.differs(MANIFEST, code, detail);
  if (manifest === null) {
    differ('manifest_missing', 'there is none');
  } else {
    const { signed: count, unsigned, keys } = manifest.signatures;
    const { chains } = manifest;
    const lines = chains.reduce((sum, chain) => sum + chain.lines, 0);
    tally.manifest = {
      lines,
      head: chains.length === 1 ? (chains[0]?.head ?? '') : '',
      ...writersOf(chains),
      signed: count,
      unsigned,
      keys: Array.from(keys, ([key, known]) => ({ key, known })),
      heads: heads.length,
    };
    for (const difference of manifest.differences) tally.differ(difference);
    if (signed && count === 0 && lines > 0) differ('manifest_unsigned', 'no line is signed by a given key');
  }
  for (const { head, where } of heads) {
    if (head === NOTHING || (manifest !== null && holds(manifest, head))) continue;
    const noted = where === null ? '' : `, noted in ${where}`;
    differ('head_missing', `no line has the hash ${head}${noted}: the end was cut off or changed`);
  }
  if (manifest === null) return;
  for (const [file, { erasure }] of manifest.returned) {
    tally.differs(file, 'file_returned', `listed again after erasure ${erasure} changed it`);
  }
  for (const [file, line] of manifest.entries) {
    if ('erasure' in line) {
      const what = line.sha256 === null ? 'the file removed' : `${line.removed} records removed`;
      tally.note(file, `${what} by erasure ${line.erasure} at ${line.at}`);
    } else if (line.repaired_at !== undefined) {
      tally.note(file, `listed by a repair at ${line.repaired_at}; proven from then on only`);
    } else if (manifest.superseded.has(file)) {
      tally.note(file, 'listed more than once; the last line counts');
    }
  }
}

/** Each writer's chain, of an archive in a store. */
function writersOf(chains: Manifest['chains']): Pick<ManifestReport, 'writers'> {
  const writers = chains.flatMap(({ writer, lines, head }) =>
    writer === null ? [] : [{ writer, lines, head }],
  );
  return writers.length === 0 ? {} : { writers };
}

/** Reports what is not a finished file. */
export function reportOthers({ parts, temporary, notFollowed }: ArchiveListing, tally: VerifyTally): void {
  for (const file of notFollowed) {
    tally.differs(file, 'file_not_followed', 'not a plain file; not followed');
  }
  for (const file of parts) {
    tally.note(file, 'unfinished: a receiver is running, or did not stop cleanly');
  }
  const unfinished = new Set(parts.map((part) => part.slice(0, -PART_EXTENSION.length)));
  for (const file of temporary) {
    // The part beside it is being finished.
    if (unfinished.has(file.slice(0, -TEMPORARY_EXTENSION.length))) continue;
    tally.note(file, 'temporary: a receiver is running, or was killed while writing');
  }
}

export const FILE_MISSING = 'listed in the manifest, but missing';

/** Lines of listed files that are missing. Compacted files need not be there. */
export function missingFiles(
  { files, aside, claims, notFollowed }: ArchiveListing,
  { entries, compactions }: Pick<Manifest, 'entries' | 'compactions'>,
): readonly ManifestLine[] {
  const present = new Set([files, aside, claims, notFollowed].flat());
  for (const { replaces } of compactions.values()) for (const { file } of replaces) present.add(file);
  return [...entries.values()].filter(({ file, sha256 }) => sha256 !== null && !present.has(file));
}

/** Reports missing files. @param found all that were read: one may hold the bytes under another name */
export function reportMissing(
  listing: ArchiveListing,
  manifest: Pick<Manifest, 'entries' | 'compactions'>,
  found: ReadonlyMap<string, FileFacts>,
  tally: VerifyTally,
): void {
  const byWhom = isStoreUrl(listing.root) ? ': removed by somebody, or by a lifecycle rule of the store' : '';
  const holders = new Map(Array.from(found, ([file, { sha256 }]) => [sha256, file]));
  for (const { file, sha256 } of missingFiles(listing, manifest)) {
    const holder = holders.get(sha256 ?? '');
    const where = holder === undefined ? byWhom : `; its bytes are in ${holder}`;
    tally.differs(file, 'file_missing', `${FILE_MISSING}${where}`);
  }
}
