import { MANIFEST } from '../core/archive.ts';
import type { RecordEnvelope } from '../core/archive-record.ts';
import { MillraceError } from '../core/errors.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { compareClaim, compareFile, readClaim, type ClaimFacts } from './check-file.ts';
import { reportManifest, reportMissing, reportOthers, type ExpectedHead } from './check-listing.ts';
import { checkCompactions, reportAside, sliceChecks } from './check-compactions.ts';
import { checkRecord, RepeatedLines, type RecordChecks } from './check-record.ts';
import { readFacts, type FileFacts } from './facts.ts';
import type { Trust } from './judge.ts';
import { readManifest, type Manifest } from './manifest.ts';
import type { ArchiveListing } from './place.ts';
import { listArchive, type Places } from './places.ts';
import type { ArchiveItem } from './read-line.ts';
import { VerifyTally, type Difference, type DifferenceCode, type VerifyReport } from './report.ts';

/** `verifier` checks each record's signature at the time of its receipt: its tolerance must be infinite. */
export interface VerifyOptions extends RecordChecks {
  readonly places?: Places | undefined;
  /** Without it sealed records are counted, and their signatures are not checked. */
  readonly opener?: RecordOpener | undefined;
  /** Heads that were noted or reported before; the manifest must still hold them. */
  readonly heads?: readonly ExpectedHead[];
  /** Without it one key must have signed all lines, and receipts are not checked. */
  readonly trust?: Trust;
  /** Whether an unsigned manifest is a difference. */
  readonly signed?: boolean;
  /** Differences that the caller has found, such as those of the key store. */
  readonly found?: readonly Difference[];
  readonly signal?: AbortSignal | undefined;
  /** Called before each file. */
  readonly onProgress?: (done: number, total: number, file: string) => void;
}

/** What a verification has read; a repair is planned from it. */
export interface Inspection {
  readonly report: VerifyReport;
  readonly listing: ArchiveListing;
  /** Null when there is none. */
  readonly manifest: Manifest | null;
  /** All files that could be read. */
  readonly files: ReadonlyMap<string, FileFacts>;
  readonly claims: ReadonlyMap<string, ClaimFacts>;
}

/**
 * Compares every file of an archive with its manifest: sizes, hashes, counts, types, the manifest's chain and, with a
 * verifier, each record's signature over its exact bytes. Reads each file once, in constant memory.
 *
 * Files that differ are checked again at the end, since receivers, compactions and erasures may run beside it. For a
 * certain answer the receiver must be stopped.
 * @param path the archive's folder
 * @throws MillraceError archive_unreadable
 */
export async function verifyArchive(path: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  return checkAgain(path, await inspectArchive(path, options), options);
}

/** Differences that a change between the reading of manifest and files can cause. */
const FLEETING: ReadonlySet<DifferenceCode> = new Set([
  'file_missing',
  'file_extra',
  'file_returned',
  'file_truncated',
  'file_changed',
  'file_unreadable',
  'counts_differ',
  'compaction_differs',
]);

/** Compares the files with fleeting differences once more with the manifest of now, if anything has changed. */
async function checkAgain(
  path: string,
  { report, listing: before, manifest: known }: Inspection,
  { places, opener, signal, trust = ALONE }: VerifyOptions,
): Promise<VerifyReport> {
  const doubtful = new Set(report.differences.flatMap(({ code, file }) => (FLEETING.has(code) ? file : [])));
  if (doubtful.size === 0 || known === null) return report;
  const listing = await listArchive(path, places);
  const manifest = await readManifest(listing, { trust });
  if (namesIn(before) === namesIn(listing) && headsOf(manifest) === headsOf(known)) return report;
  const isDoubtful = (file: string): boolean => doubtful.has(file);
  const isFleeting = ({ code, file }: Difference): boolean => FLEETING.has(code) && isDoubtful(file);
  const some = {
    ...listing,
    files: listing.files.filter(isDoubtful),
    aside: listing.aside.filter(isDoubtful),
    claims: listing.claims.filter(isDoubtful),
  };
  const tally = new VerifyTally();
  await checkContents(some, manifest, tally, { opener, signal });
  const certain = tally.report(report.path).differences.filter(isFleeting);
  const rest = report.differences.filter((difference) => !isFleeting(difference));
  return { ...report, differences: [...rest, ...certain] };
}

function headsOf({ chains }: Manifest): string {
  return chains.map(({ name, head }) => `${name} ${head}`).join();
}

function namesIn({ files, aside, claims }: ArchiveListing): string {
  return [files, aside, claims].join('\n');
}

/** Like `verifyArchive`, without the second check. */
export async function inspectArchive(path: string, options: VerifyOptions = {}): Promise<Inspection> {
  const listing = await listArchive(path, options.places);
  refuseUnlessArchive(path, listing);
  const tally = new VerifyTally();
  for (const difference of options.found ?? []) tally.differ(difference);
  const manifest =
    listing.manifest.length > 0 ? await readManifest(listing, { trust: options.trust ?? ALONE }) : null;
  reportManifest(manifest, tally, options);
  reportOthers(listing, tally);
  if (manifest !== null) checkCompactions(manifest, tally);
  const contents = await checkContents(listing, manifest, tally, options);
  return { report: tally.report(listing.root), listing, manifest, ...contents };
}

async function checkContents(
  listing: ArchiveListing,
  manifest: Manifest | null,
  tally: VerifyTally,
  options: VerifyOptions,
): Promise<Pick<Inspection, 'files' | 'claims'>> {
  const lines: Lines = manifest?.entries ?? new Map();
  const files = await checkFiles(listing, lines, tally, options);
  const claims = await checkClaims(listing, lines, tally, options);
  await reportAside(listing, manifest, tally);
  if (manifest !== null) reportMissing(listing, manifest, files, tally);
  return { files, claims };
}

/** Trust without known keys: the first one counts. */
const ALONE: Trust = { keys: new Set(), receipts: null };

type Lines = Manifest['entries'];

async function checkFiles(
  { place, files, claims }: ArchiveListing,
  lines: Lines,
  tally: VerifyTally,
  { opener, signal, onProgress, ...checks }: VerifyOptions,
): Promise<Map<string, FileFacts>> {
  const found = new Map<string, FileFacts>();
  const names = new Map<string, string>();
  for (const [file, { sha256 }] of lines) if (sha256 !== null) names.set(sha256, file);
  place.expect(files);
  for (const [done, file] of files.entries()) {
    onProgress?.(done, files.length + claims.length, file);
    const slices = sliceChecks(lines.get(file));
    // A compacted file may repeat records.
    const repeated = slices === null ? new RepeatedLines() : null;
    const onItem = (item: ArchiveItem<RecordEnvelope>): void => {
      checkRecord(item, tally, checks);
      repeated?.check(item, tally);
    };
    const facts = await readFacts(place, file, { onItem, opener, signal, onBytes: slices?.add });
    tally.files += 1;
    if (facts === null) continue;
    found.set(file, facts);
    tally.records += facts.records;
    tally.bytes += facts.bytes;
    const name = names.get(facts.sha256) ?? file;
    const listed = { line: lines.get(file) ?? null, elsewhere: name === file ? null : name };
    const differences = [...compareFile(facts, listed), ...(slices?.differences() ?? [])];
    for (const [code, detail] of differences) tally.differs(file, code, detail);
  }
  return found;
}

async function checkClaims(
  { place, files, claims }: ArchiveListing,
  lines: Lines,
  tally: VerifyTally,
  { signal, onProgress }: VerifyOptions,
): Promise<Map<string, ClaimFacts>> {
  const found = new Map<string, ClaimFacts>();
  place.expect(claims);
  for (const [done, file] of claims.entries()) {
    onProgress?.(files.length + done, files.length + claims.length, file);
    const facts = await readClaim(place, file, signal);
    tally.claims += 1;
    if (typeof facts === 'string') {
      tally.differs(file, 'file_unreadable', facts);
      continue;
    }
    found.set(file, facts);
    tally.bytes += facts.bytes;
    for (const [code, detail] of compareClaim(facts, lines.get(file) ?? null))
      tally.differs(file, code, detail);
  }
  return found;
}

function refuseUnlessArchive(path: string, listing: ArchiveListing): void {
  const { isFolder, manifest, files, aside, parts, claims } = listing;
  if (!isFolder)
    throw new MillraceError('archive_unreadable', `${path} is a file; name the archive's folder`);
  if (manifest.length + files.length + aside.length + parts.length + claims.length > 0) return;
  throw new MillraceError(
    'archive_unreadable',
    `${path} holds no archive: neither ${MANIFEST} nor *.ndjson*`,
  );
}
