import { nameOf, type ArchiveListing, type ArchivePlace } from '../archive/place.ts';
import { FILE_MISSING, missingFiles } from '../archive/check-listing.ts';
import { fileChunks } from '../archive/file-lines.ts';
import { readManifest, type Manifest } from '../archive/manifest.ts';
import { holdsEvents, listArchive, type Places } from '../archive/places.ts';
import { finishedNames } from '../archive/read.ts';
import { PART_EXTENSION } from '../core/archive.ts';
import type { ManifestLine } from '../core/archive-manifest.ts';
import { SEALED_TYPE } from '../core/sealed-record.ts';
import type { StoredObject } from '../core/storage.ts';
import { OPEN_BRACE, OPEN_BRACKET, skipWhite } from '../lib/json-text.ts';
import { parseBlobName } from './blob-name.ts';
import { withoutMark } from './cut-documents.ts';
import type { Selection } from './selection.ts';
import type { FileUnit, Unit } from './unit.ts';

export interface Listing {
  readonly places: Places;
  /** Files without a matching event, by their manifest, are left out. */
  readonly selection: Selection;
  /** Called for an archive with files that were left out. */
  readonly onPassedOver: (root: string, files: number) => void;
  /** Called for a file of another program that does not begin as events do. */
  readonly onIgnored: (where: string, reason: string) => void;
}

/**
 * Lists the units of a path or URL: one file; an archive of the files sink, with its unfinished files; or files of
 * other programs with JSON in them, and archives, at any depth.
 * @throws MillraceError archive_unreadable, store_unreadable
 */
export async function* listPath(path: string, about: Listing): AsyncGenerator<Unit> {
  const listing = await listArchive(path, about.places);
  const { place, root, files, parts, claims, manifest, others, notFollowed, isFolder } = listing;
  if (!isFolder) {
    for (const file of files) {
      const unit = await unitOf(place, file);
      const isEmpty = unit.kind === 'file' && unit.bytes === 0;
      yield isEmpty ? { kind: 'unreadable', where: nameOf(root, file), reason: 'it is empty' } : unit;
    }
    return;
  }
  const all = [files, parts, claims, manifest, others].flat();
  const archives = archivesIn(all);
  if (archives.has('')) {
    yield* listArchiveFiles(listing, about);
    return;
  }
  for (const folder of archives)
    yield* listArchiveFiles(await about.places.at(nameOf(root, folder)).list(), about);
  const isForeign = (file: string): boolean => !parentsOf(file).some((folder) => archives.has(folder));
  for (const file of notFollowed.filter(isForeign))
    if (holdsEvents(file)) yield { kind: 'unreadable', where: nameOf(root, file), reason: NOT_FOLLOWED };
    else about.onIgnored(nameOf(root, file), NOT_FOLLOWED);
  let isEmpty = archives.size === 0;
  for (const file of all.filter(isForeign).toSorted()) {
    const why = holdsEvents(file) ? null : await whyIgnored(place, file);
    if (why !== null) {
      about.onIgnored(nameOf(root, file), why);
      continue;
    }
    const unit = await unitOf(place, file);
    if (unit.kind !== 'file' || unit.bytes > 0) isEmpty = false;
    yield unit;
  }
  if (isEmpty) yield { kind: 'unreadable', where: root, reason: 'no file in it has events' };
}

/** Names by which programs mark files that are not data, or not whole. */
const HIDDEN = /(?:^|\/)[._]|\.(?:tmp|temp|partial|crc)$/;

/** Looks at the first bytes of a file whose name does not say that it has events. */
async function whyIgnored(place: ArchivePlace, file: string): Promise<string | null> {
  if (HIDDEN.test(file)) return 'its name is that of a hidden or an unfinished file';
  try {
    for await (const chunk of fileChunks(place, file, { isForeign: true })) {
      const text = withoutMark(chunk);
      const first = text[skipWhite(text, 0)];
      return first === OPEN_BRACE || first === OPEN_BRACKET ? null : 'it does not begin with a JSON object';
    }
    return 'it is empty';
  } catch {
    // The read of it will say why.
    return null;
  }
}

/** Folders of archives that are not inside another archive; `''` is the root. */
function archivesIn(files: readonly string[]): ReadonlySet<string> {
  const folders = new Set(files.flatMap((file) => ARCHIVE.exec(file)?.[1]?.slice(0, -1) ?? []));
  return new Set([...folders].filter((folder) => !parentsOf(folder).some((outer) => folders.has(outer))));
}

/** Files of a manifest, and unfinished files. */
const ARCHIVE = /^((?:[^/]+\/)*?)(?:_manifest\.jsonl$|_manifest\/[0-9a-f]{12}\/|_open\/)/;

function parentsOf(file: string): string[] {
  const levels = file.split('/').slice(0, -1);
  return levels.map((_, index) => levels.slice(0, index + 1).join('/'));
}

/** Claim checks are not listed: their events are in the records too. */
async function* listArchiveFiles(
  listing: ArchiveListing,
  { selection, onPassedOver }: Listing,
): AsyncGenerator<Unit> {
  const { place, root, files, parts, notFollowed } = listing;
  for (const file of notFollowed)
    yield { kind: 'unreadable', where: nameOf(root, file), reason: NOT_FOLLOWED };
  const manifest = await readManifest(listing);
  const passOver = passOverBy(manifest, selection);
  let passedOver = 0;
  for (const file of files) {
    const unit = await unitOf(place, file);
    if (unit.kind === 'file' && passOver(file, unit.bytes)) passedOver += 1;
    else yield unit;
  }
  for (const { file, bytes } of await missingIn(listing, manifest))
    if (!passOver(file, bytes)) yield { kind: 'unreadable', where: nameOf(root, file), reason: MISSING };
  if (passedOver > 0) onPassedOver(root, passedOver);
  const finished = new Set(files);
  for (const part of parts) {
    // A crash can leave a part beside its finished file.
    if (!finishedNames(part).some((name) => finished.has(name))) yield await unitOf(place, part);
  }
}

const NOT_FOLLOWED = 'not a plain file; not followed';
/** With the code that \`archive verify\` uses. */
const MISSING = `file_missing: ${FILE_MISSING}`;

/** A part that was finished since it was listed has a new name. */
async function unitOf(place: ArchivePlace, file: string): Promise<Unit> {
  for (const name of file.endsWith(PART_EXTENSION) ? [file, ...finishedNames(file)] : [file]) {
    const state = await place.stat(name);
    if (state !== null) return fileUnit(place.root, name, state);
  }
  // A file that a compaction has joined since it was listed is read by its old name.
  const slice = await place.sliceOf(file);
  const by = slice === null ? null : await place.stat(slice.file);
  if (slice !== null)
    return fileUnit(place.root, file, { bytes: slice.bytes, modifiedAt: by?.modifiedAt ?? 0 });
  return { kind: 'unreadable', where: nameOf(place.root, file), reason: 'it disappeared' };
}

function fileUnit(
  root: string,
  file: string,
  { bytes, modifiedAt: modified, version }: Pick<StoredObject, 'bytes' | 'modifiedAt'> & { version?: string },
): FileUnit {
  const whole = parseBlobName(nameOf(root, file)) === null ? 'lines' : 'event';
  const form = file.endsWith(PART_EXTENSION) ? 'part' : whole;
  return { kind: 'file', root, file, form, bytes, modified, ...(version === undefined ? {} : { version }) };
}

/** True for a file of this size without a matching event. */
type PassOver = (file: string, bytes: number) => boolean;

/** Lines of missing files. Lists twice, as files can be finished or erased during the listing. */
async function missingIn(listing: ArchiveListing, manifest: Manifest): Promise<readonly ManifestLine[]> {
  const missing = missingFiles(listing, manifest);
  if (missing.length === 0) return missing;
  const now = await listing.place.list();
  const still = new Set(missingFiles(now, await readManifest(now)).map(({ file }) => file));
  // The event of a missing claim check is in its record.
  return missing.filter((line) => !('claim_check' in line) && still.has(line.file));
}

/**
 * Decides by the manifest, which has the types and times of each file, so that a replay of a week opens few files of a
 * year. A broken manifest, and a line with another size, decide nothing.
 */
function passOverBy({ entries, isSound }: Manifest, selection: Selection): PassOver {
  const { types, since, until } = selection;
  if (!isSound || (types.length === 0 && since === null && until === null)) return () => false;
  return (file, bytes) => {
    const entry = entries.get(file);
    return entry !== undefined && entry.bytes === bytes && hasNoMatch(entry, selection);
  };
}

function hasNoMatch(entry: ManifestLine, { types, since, until }: Selection): boolean {
  if ('claim_check' in entry || entry.first_received_at === null || entry.last_received_at === null)
    return false;
  if (since !== null && Date.parse(entry.last_received_at) < since) return true;
  if (until !== null && Date.parse(entry.first_received_at) >= until) return true;
  const isAsked = (type: string): boolean => types.some((prefix) => type.startsWith(prefix));
  return types.length > 0 && !Object.keys(entry.types).some((type) => type === SEALED_TYPE || isAsked(type));
}
