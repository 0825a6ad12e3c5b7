import { MANIFEST, PART_EXTENSION } from '../core/archive.ts';
import type { ManifestLine } from '../core/archive-manifest.ts';
import { isStoreUrl } from '../core/place.ts';
import type { FileFacts } from './facts.ts';
import { TEMPORARY_EXTENSION, type ArchiveListing } from './place.ts';
import type { Manifest } from './manifest.ts';
import type { DifferenceCode, ManifestReport, Tally } from './report.ts';
import { hashLine } from '../lib/chained-log.ts';

/** A head that the manifest must hold. */
export interface ExpectedHead {
  readonly head: string;
  /** Where it was noted; null for one that was given. */
  readonly where: string | null;
}

/** @param head all of a hash, or its first digits */
function holds({ chains }: Manifest, head: string): boolean {
  return chains.some(
    ({ hashes }) => hashes.has(head) || [...hashes.keys()].some((hash) => hash.startsWith(head)),
  );
}

/** Head of a manifest without a line: every manifest holds it. */
const NOTHING = hashLine('');

/** What is wrong with the manifest itself, and what its lines say beside a file's contents. */
export function reportManifest(
  manifest: Manifest | null,
  tally: Tally,
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

/** Of an archive in a store: each writer's chain. */
function writersOf(chains: Manifest['chains']): Pick<ManifestReport, 'writers'> {
  const writers = chains.flatMap(({ writer, lines, head }) =>
    writer === null ? [] : [{ writer, lines, head }],
  );
  return writers.length === 0 ? {} : { writers };
}

/** What lies there and is no finished file. */
export function reportOthers({ parts, temporary, notFollowed }: ArchiveListing, tally: Tally): void {
  for (const file of notFollowed) {
    tally.differs(file, 'file_not_followed', 'not a plain file; not followed');
  }
  for (const file of parts) {
    tally.note(file, 'unfinished: a receiver is running, or did not stop cleanly');
  }
  const unfinished = new Set(parts.map((part) => part.slice(0, -PART_EXTENSION.length)));
  for (const file of temporary) {
    // Beside its part, it is the part being finished.
    if (unfinished.has(file.slice(0, -TEMPORARY_EXTENSION.length))) continue;
    tally.note(file, 'temporary: a receiver is running, or was killed while writing');
  }
}

/** What is said of a listed file that is not there. */
export const FILE_MISSING = 'listed in the manifest, but missing';

/** Files that the manifest lists and that are not there. What a compaction replaced need not be there. */
export function missingFiles(
  { files, aside, claims, notFollowed }: ArchiveListing,
  { entries, compactions }: Pick<Manifest, 'entries' | 'compactions'>,
): readonly ManifestLine[] {
  const present = new Set([files, aside, claims, notFollowed].flat());
  for (const { replaces } of compactions.values()) for (const { file } of replaces) present.add(file);
  return [...entries.values()].filter(({ file, sha256 }) => sha256 !== null && !present.has(file));
}

/** Names missing files, once all others have been read: their bytes may be under another name. */
export function reportMissing(
  listing: ArchiveListing,
  manifest: Pick<Manifest, 'entries' | 'compactions'>,
  found: ReadonlyMap<string, FileFacts>,
  tally: Tally,
): void {
  const byWhom = isStoreUrl(listing.root) ? ': removed by somebody, or by a lifecycle rule of the store' : '';
  const holders = new Map(Array.from(found, ([file, { sha256 }]) => [sha256, file]));
  for (const { file, sha256 } of missingFiles(listing, manifest)) {
    const holder = holders.get(sha256 ?? '');
    const where = holder === undefined ? byWhom : `; its bytes are in ${holder}`;
    tally.differs(file, 'file_missing', `${FILE_MISSING}${where}`);
  }
}
