import { Compactions } from '../archive/compactions.ts';
import { hashFile } from '../archive/facts.ts';
import { readManifest } from '../archive/manifest.ts';
import { readPieces } from '../archive/pieces.ts';
import { nameOf } from '../archive/place.ts';
import { listArchive, type Places } from '../archive/places.ts';
import type { ManifestLine } from '../core/archive-manifest.ts';
import { canHoldWanted, type Selection, type TakesType } from './select.ts';

/** A finished file of an archive, as it is now. */
export interface Source {
  /** Of the archive's place: its folder, absolute, or its URL. */
  readonly root: string;
  /** Relative to `root`, `/`-separated. */
  readonly file: string;
  /** Of the bytes on disk, as the manifest says it; read from the file where no manifest does. */
  readonly sha256: string;
  /** Its size as the manifest says it; absent where none does. */
  readonly bytes?: number;
  /** Of its first record, UTC, as the manifest says it; null where none does. */
  readonly day: string | null;
  /** What a compaction made it of, as far as it is wanted: its bytes are theirs, which can be read by their old names. */
  readonly pieces?: readonly Source[];
}

/** The files to be read, and what was left out. */
export interface SourceList {
  readonly sources: readonly Source[];
  /** SHA-256 of every finished file there is, wanted or not, also inside a compacted one, by `root` and `file` joined. */
  readonly present: ReadonlyMap<string, string>;
  /** Folders that were listed whole: what is not present below them is gone or missing. */
  readonly roots: ReadonlySet<string>;
  /** By `root` and `file` joined: what is not there, nor is to be, as an erasure removed it or what was wanted of it, or a compaction replaced it. */
  readonly gone: ReadonlyMap<string, 'empty' | 'joined'>;
  /** Wanted files that the manifest still lists as they were, and that are not there; the same way. */
  readonly missing: ReadonlyMap<string, Source>;
  /** Unfinished files: their records come with the next export. */
  readonly unfinished: number;
  /** Files that hold nothing wanted, as the manifest tells. */
  readonly passedOver: number;
  readonly problems: readonly { readonly file: string; readonly reason: string }[];
}

/**
 * Lists what there is to export, in order of archive and path. A file that two paths name counts once.
 * @throws MillraceError archive_unreadable
 */
export async function listSources(
  paths: readonly string[],
  places: Places,
  selection: Selection,
  takes: TakesType,
): Promise<SourceList> {
  const found = new Map<string, Source>();
  const present = new Map<string, string>();
  const roots = new Set<string>();
  const gone = new Map<string, 'empty' | 'joined'>();
  const missing = new Map<string, Source>();
  const problems: { file: string; reason: string }[] = [];
  let unfinished = 0;
  let passedOver = 0;
  for (const path of paths) {
    const listing = await listArchive(path, places);
    const { place, root, files, parts, notFollowed, isFolder } = listing;
    unfinished += parts.length;
    if (isFolder) roots.add(root);
    for (const file of notFollowed) problems.push({ file, reason: 'not a plain file; not followed' });
    const manifest = await readManifest(listing);
    const { entries } = manifest;
    const piecesOf = await readPieces(listing, manifest);
    const isPassedOver = (file: string): boolean => {
      const entry = entries.get(file);
      return entry !== undefined && 'types' in entry && !canHoldWanted(entry, selection, takes);
    };
    const withPieces = (source: Source): Source => {
      const pieces = piecesOf(source.file)?.map(({ file, sha256, bytes }) => {
        present.set(nameOf(root, file), sha256);
        return withPieces({ root, file, sha256, bytes, day: dayOf(entries.get(file)) });
      });
      return pieces === undefined
        ? source
        : { ...source, pieces: pieces.filter(({ file }) => !isPassedOver(file)) };
    };
    for (const file of files) {
      const at = nameOf(root, file);
      const entry = entries.get(file);
      const listed = entry !== undefined && 'types' in entry ? entry : null;
      const sha256 = listed?.sha256 ?? (await hashFile(place, file)).sha256;
      present.set(at, sha256);
      const bytes = listed === null ? {} : { bytes: listed.bytes };
      const source = withPieces({ root, file, sha256, day: dayOf(entry), ...bytes });
      if (isPassedOver(file)) passedOver += 1;
      else found.set(at, source);
    }
    if (!isFolder) continue;
    const compactions = new Compactions(manifest.compactions);
    const there = new Set(files);
    const stands = (file: string): boolean => there.has(file) || entries.get(file)?.sha256 === null;
    for (const [file, entry] of entries) {
      if (there.has(file) || !('types' in entry)) continue;
      const { sha256 } = entry;
      const isJoined = compactions.isReplaced(file, stands);
      if (isJoined || sha256 === null || isPassedOver(file))
        gone.set(nameOf(root, file), isJoined ? 'joined' : 'empty');
      else missing.set(nameOf(root, file), { root, file, sha256, day: dayOf(entry) });
    }
  }
  return { sources: [...found.values()], present, roots, gone, missing, unfinished, passedOver, problems };
}

function dayOf(line: ManifestLine | undefined): string | null {
  return line !== undefined && 'types' in line
    ? (line.first_received_at?.slice(0, DAY_LENGTH) ?? null)
    : null;
}

const DAY_LENGTH = '2026-11-21'.length;
