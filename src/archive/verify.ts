import { MANIFEST } from '../core/archive.ts';
import type { ManifestLine } from '../core/archive-manifest.ts';
import type { RecordEnvelope } from '../core/archive-record.ts';
import { MillraceError } from '../core/errors.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { compareClaim, compareFile, readClaim, type ClaimFacts } from './check-file.ts';
import { reportManifest, reportMissing, reportOthers, type ExpectedHead } from './check-listing.ts';
import { checkCompactions, reportAside, sliceHashes } from './check-compactions.ts';
import { checkRecord, RepeatedLines, type RecordChecks } from './check-record.ts';
import { readFacts, type FileFacts } from './facts.ts';
import type { Trust } from './judge.ts';
import { readManifest, type Manifest } from './manifest.ts';
import type { ArchiveListing } from './place.ts';
import { listArchive, type Places } from './places.ts';
import type { ArchiveItem } from './read-line.ts';
import { Tally, type Difference, type DifferenceCode, type VerifyReport } from './report.ts';

export type { VerifyReport } from './report.ts';

/** `verifier` checks each record's signature at the time of its receipt: it needs a boundless tolerance. */
export interface VerifyOptions extends RecordChecks {
  /** Where archives are opened; without it, only folders are. */
  readonly places?: Places | undefined;
  /** Opens sealed records; without it they are counted, and their signatures are not checked. */
  readonly opener?: RecordOpener | undefined;
  /** Heads that an earlier run reported, or that were noted: the manifest must still hold the lines they are the hashes of. */
  readonly heads?: readonly ExpectedHead[];
  /** What the manifest's lines are judged by; without it they must be signed by one key, and receipts are not looked for. */
  readonly trust?: Trust;
  /** Whether it is a difference that no line is signed. */
  readonly signed?: boolean;
  /** What is known to be wrong before it begins, with the keys of sealed records say. */
  readonly found?: readonly Difference[];
  readonly signal?: AbortSignal | undefined;
  /** Told before each file: how many are done, and how many there are. */
  readonly onProgress?: (done: number, total: number, file: string) => void;
}

/** All that verifying has read, for the repair to build on. */
export interface Inspection {
  readonly report: VerifyReport;
  readonly listing: ArchiveListing;
  /** Null when there is none. */
  readonly manifest: Manifest | null;
  /** Of every file that could be read. */
  readonly files: ReadonlyMap<string, FileFacts>;
  readonly claims: ReadonlyMap<string, ClaimFacts>;
}

/**
 * Holds every file of an archive against its manifest: sizes, hashes, counts, types, the manifest's own chain and, with
 * a verifier, each record's signature over its exact bytes. Reads each file once, in constant memory.
 *
 * What seems extra, missing or changed is looked at again in the end: receivers, compactions and erasures go on meanwhile. What is
 * just being finished then is reported all the same; stop the receiver for a clean answer.
 * @param path the archive's folder
 * @throws MillraceError archive_unreadable
 */
export async function verifyArchive(path: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const found = await inspectArchive(path, options);
  return lookAgain(path, found, options);
}

/** What may only have seemed so, because files and manifest are read one after the other. */
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

/** Holds each file that seems wrong once more against a manifest that is read later than it was. */
async function lookAgain(
  path: string,
  { report, listing: before, manifest: known }: Inspection,
  { places, opener, signal, trust = ALONE }: VerifyOptions,
): Promise<VerifyReport> {
  const doubtful = new Set(
    report.differences.filter(({ code }) => FLEETING.has(code)).map(({ file }) => file),
  );
  if (doubtful.size === 0 || known === null) return report;
  const listing = await listArchive(path, places);
  const manifest = await readManifest(listing, { trust });
  if (namesIn(before) === namesIn(listing) && headsOf(manifest) === headsOf(known)) return report;
  const isOne = (file: string): boolean => doubtful.has(file);
  const { files, aside, claims } = listing;
  const some = { files: files.filter(isOne), aside: aside.filter(isOne), claims: claims.filter(isOne) };
  const tally = new Tally();
  const entries = new Map([...manifest.entries].filter(([file]) => isOne(file)));
  const found = await checkFiles({ ...listing, ...some }, manifest.entries, tally, { opener, signal });
  await checkClaims({ ...listing, ...some }, manifest.entries, tally, { signal });
  await reportAside({ ...listing, ...some }, manifest, tally);
  reportMissing(listing, { ...manifest, entries }, found, tally);
  const certain = tally.report(report.path).differences.filter(({ code }) => FLEETING.has(code));
  const rest = report.differences.filter(({ code, file }) => !(isOne(file) && FLEETING.has(code)));
  return { ...report, differences: [...rest, ...certain] };
}

function headsOf({ chains }: Manifest): string {
  return chains.map(({ name, head }) => `${name} ${head}`).join();
}

function namesIn({ files, aside, claims }: ArchiveListing): string {
  return [files, aside, claims].join('\n');
}

/** Like `verifyArchive`, with everything it has learnt. */
export async function inspectArchive(path: string, options: VerifyOptions = {}): Promise<Inspection> {
  const listing = await listArchive(path, options.places);
  refuseUnlessArchive(path, listing);
  const tally = new Tally();
  for (const difference of options.found ?? []) tally.differ(difference);
  const manifest =
    listing.manifest.length > 0 ? await readManifest(listing, { trust: options.trust ?? ALONE }) : null;
  reportManifest(manifest, tally, options);
  reportOthers(listing, tally);
  const lines = manifest?.entries ?? new Map<string, ManifestLine>();
  if (manifest !== null) checkCompactions(manifest, tally);
  const files = await checkFiles(listing, lines, tally, options);
  const claims = await checkClaims(listing, lines, tally, options);
  await reportAside(listing, manifest, tally);
  if (manifest !== null) reportMissing(listing, manifest, files, tally);
  return { report: tally.report(listing.root), listing, manifest, files, claims };
}

/** By itself a manifest can only be held to one key. */
const ALONE: Trust = { keys: new Set(), receipts: null };

type Lines = ReadonlyMap<string, ManifestLine>;

async function checkFiles(
  { place, files, claims }: ArchiveListing,
  lines: Lines,
  tally: Tally,
  { opener, signal, onProgress, ...checks }: VerifyOptions,
): Promise<Map<string, FileFacts>> {
  const found = new Map<string, FileFacts>();
  const names = new Map<string, string>();
  for (const [file, { sha256 }] of lines) if (sha256 !== null) names.set(sha256, file);
  place.expect(files);
  for (const [done, file] of files.entries()) {
    onProgress?.(done, files.length + claims.length, file);
    const slices = sliceHashes(lines.get(file));
    // What a compaction has put together may have been written twice.
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
  tally: Tally,
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
