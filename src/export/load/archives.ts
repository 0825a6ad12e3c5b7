import { hashFile } from '../../archive/facts.ts';
import { Compactions } from '../../archive/compactions.ts';
import { readManifest } from '../../archive/manifest.ts';
import { readPieces } from '../../archive/pieces.ts';
import { listArchive, type Places } from '../../archive/places.ts';
import { MillraceError } from '../../core/errors.ts';

/** A finished file of an archive, as it is now. */
export interface ArchiveFile {
  readonly archive: string;
  readonly root: string;
  /** Relative to `root`. */
  readonly file: string;
  readonly sha256: string;
  /** What a compaction made it of: its bytes are theirs, which can be read by their old names. */
  readonly pieces?: readonly ArchiveFile[];
}

/** One archive as it lies there. */
export interface Archive {
  /** What it is known by, wherever it lies: the hash of its manifest's first line; where there is none, its path or URL. */
  readonly id: string;
  /** What it was known by before it had a manifest. */
  readonly path: string;
  readonly files: readonly ArchiveFile[];
  /** Files that the manifest still lists as they were, and that are not there. */
  readonly missing: ReadonlySet<string>;
  /** Unfinished files: their records come when they are finished. */
  readonly unfinished: number;
  readonly problems: readonly { readonly file: string; readonly reason: string }[];
}

/** @throws MillraceError archive_unreadable; usage for what is no folder */
export async function readArchiveFolder(path: string, places: Places): Promise<Archive> {
  const listing = await listArchive(path, places);
  const { place, root, files, parts, notFollowed, isFolder } = listing;
  if (!isFolder)
    throw new MillraceError('usage', `${path}: name the folder of the archive, not a file of it`);
  const manifest = await readManifest(listing);
  const { entries, chains } = manifest;
  const compactions = new Compactions(manifest.compactions);
  const pieces = await readPieces(listing, manifest);
  // Writers to a store come and go, each with a first line of its own.
  const [first] = chains.find(({ writer }) => writer === null)?.hashes.keys() ?? [];
  const byPath = `path:${root}`;
  const id = first ?? byPath;
  const present = new Set(files);
  const found: ArchiveFile[] = [];
  const piecesOf = (name: string): Pick<ArchiveFile, 'pieces'> => {
    const made = pieces(name);
    if (made === null) return {};
    return {
      pieces: made.map(({ file, sha256 }) => ({ archive: id, root, file, sha256, ...piecesOf(file) })),
    };
  };
  for (const file of files) {
    const entry = entries.get(file);
    const sha256 = entry?.sha256 ?? (await hashFile(place, file)).sha256;
    found.push({ archive: id, root, file, sha256, ...piecesOf(file) });
  }
  // What an erasure removed whole held nothing else of what it was made of.
  const stands = (file: string): boolean => present.has(file) || entries.get(file)?.sha256 === null;
  const missing = [...entries].flatMap(([file, { sha256 }]) =>
    sha256 === null || present.has(file) || compactions.isReplaced(file, stands) ? [] : [file],
  );
  return {
    id,
    path: byPath,
    files: found,
    missing: new Set(missing),
    unfinished: parts.length,
    problems: notFollowed.map((file) => ({ file, reason: 'not a plain file; not followed' })),
  };
}

/** Archives, each once, however often it or a copy of it was named: of a file that several have, the first counts. */
export function onceEach(archives: readonly Archive[]): Archive[] {
  return [...Map.groupBy(archives, ({ id }) => id).values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const all = [first, ...others];
    const files = new Map(all.toReversed().flatMap((one) => one.files.map((file) => [file.file, file])));
    const problems = new Map(all.flatMap((one) => one.problems.map((problem) => [problem.file, problem])));
    return {
      ...first,
      files: [...files.values()],
      missing: new Set([...first.missing].filter((file) => !files.has(file))),
      unfinished: Math.max(...all.map(({ unfinished }) => unfinished)),
      problems: [...problems.values()],
    };
  });
}
