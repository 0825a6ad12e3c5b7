import { hashChunks } from '../lib/hash-chunks.ts';
import { type Manifest, readManifest } from '../archive/manifest.ts';
import type { ArchiveListing } from '../archive/place.ts';
import { Compactions, type Piece } from '../archive/compactions.ts';
import { listArchive, type Places } from '../archive/places.ts';
import type { ErasureLine, FileLine, ManifestLine } from '../core/archive-manifest.ts';

/** A finished file of an archive, as it is now. */
export interface Source {
  /** Of the archive: its folder, absolute, or its URL. */
  readonly root: string;
  /** Relative to `root`, `/`-separated. */
  readonly file: string;
  /** Of the bytes on disk: from the manifest, or from the file where the manifest does not list it. */
  readonly sha256: string;
  /** What the manifest says of it; null where it does not list it. */
  readonly line: FileLine | ErasureLine | null;
  /** Size by the manifest; null where it does not list the file. */
  readonly bytes: number | null;
  /** Day of its first record, UTC, by the manifest; null where it does not list the file. */
  readonly day: string | null;
  /** The files that a compaction made it of: its bytes are theirs, and can be read by their old names. */
  readonly pieces: readonly Source[];
}

/** The finished files of an archive, and what its manifest says of others. */
export interface ArchiveFiles {
  readonly root: string;
  /** False for a single file of an archive: then nothing is known of others. */
  readonly isFolder: boolean;
  /** Hash of the manifest's first line, which stays when the archive moves; null without a manifest. */
  readonly id: string | null;
  readonly files: readonly Source[];
  /** Files that the manifest lists and that are not there: a compaction replaced them, an erasure removed them, or they are lost. */
  readonly absent: readonly { readonly source: Source; readonly why: 'joined' | 'erased' | 'missing' }[];
  /** Unfinished files: their records come with the next run. */
  readonly unfinished: number;
  readonly problems: readonly { readonly file: string; readonly reason: string }[];
}

/** @throws MillraceError archive_unreadable */
export async function readArchiveFiles(path: string, places: Places): Promise<ArchiveFiles> {
  const listing = await listArchive(path, places);
  const { place, root, files, parts, notFollowed, isFolder } = listing;
  const manifest = await readManifest(listing);
  const { entries } = manifest;
  const compactions = new Compactions(manifest.compactions);
  const piecesOf = await readPieces(listing, manifest, compactions);
  const sourceOf = (file: string, sha256: string, bytes?: number): Source => {
    const line = lineOf(entries.get(file));
    const pieces = piecesOf(file) ?? [];
    return {
      root,
      file,
      sha256,
      line,
      bytes: bytes ?? line?.bytes ?? null,
      day: line?.first_received_at?.slice(0, DAY_LENGTH) ?? null,
      pieces: pieces.map((piece) => sourceOf(piece.file, piece.sha256, piece.bytes)),
    };
  };
  const sources: Source[] = [];
  for (const file of files) {
    const sha256 = lineOf(entries.get(file))?.sha256 ?? (await hashChunks(place.chunks(file))).sha256;
    sources.push(sourceOf(file, sha256));
  }
  const there = new Set(files);
  // A file that an erasure removed held nothing else of the files that it was made of.
  const stands = (file: string): boolean => there.has(file) || entries.get(file)?.sha256 === null;
  const absent = [...entries].flatMap(([file, entry]) => {
    if (!isFolder || there.has(file) || lineOf(entry) === null) return [];
    const why = compactions.isReplaced(file, stands)
      ? 'joined'
      : entry.sha256 === null
        ? 'erased'
        : 'missing';
    return [{ source: sourceOf(file, entry.sha256 ?? ''), why } as const];
  });
  // Each writer to a store has a chain of its own.
  const [id = null] = manifest.chains.find(({ writer }) => writer === null)?.hashes.keys() ?? [];
  const problems = notFollowed.map((file) => ({ file, reason: 'not a plain file; not followed' }));
  return { root, isFolder, id, files: sources, absent, unfinished: parts.length, problems };
}

const DAY_LENGTH = '2026-11-21'.length;

function lineOf(line: ManifestLine | undefined): FileLine | ErasureLine | null {
  return line !== undefined && 'types' in line ? line : null;
}

/**
 * Returns the files that a file was made of, each unchanged and readable by its old name, and null for any other file: for readers
 * that may have read some files before a compaction joined them.
 */
async function readPieces(
  { place, aside }: ArchiveListing,
  { entries }: Manifest,
  compactions: Compactions,
): Promise<(file: string) => readonly Piece[] | null> {
  // A replaced file that is still there is read itself: it can be restored from a backup, with other bytes.
  const changed = new Set<string>();
  for (const file of aside) {
    const known = compactions.hashesOf(file);
    if (known.length === 0) continue;
    const { sha256 } = await hashChunks(place.chunks(file)).catch(() => ({ sha256: '' }));
    if (known.some((one) => one !== sha256)) changed.add(file);
  }
  return (file) => {
    const pieces = compactions.piecesOf(file, entries);
    return pieces?.some((piece) => changed.has(piece.file)) === true ? null : pieces;
  };
}
