import { nameOf } from '../archive/place.ts';
import type { Places } from '../archive/places.ts';
import { type ArchiveFiles, readArchiveFiles, type Source } from './archive-files.ts';
import { canHoldWanted, type Selection, type TakesType } from './select.ts';

/** The files to be read, and what was left out. Maps are by `root` and `file` joined. */
export interface SourceList {
  readonly sources: readonly Source[];
  /** SHA-256 of every finished file, wanted or not, also inside a compacted one. */
  readonly present: ReadonlyMap<string, string>;
  /** Folders that were listed whole: a file below them that is not present is gone or missing. */
  readonly roots: ReadonlySet<string>;
  /** Files that are not there and not missing: nothing wanted is left of them, or a compaction replaced them. */
  readonly gone: ReadonlyMap<string, 'empty' | 'joined'>;
  /** Wanted files that the manifest lists and that are not there. */
  readonly missing: ReadonlyMap<string, Source>;
  /** Unfinished files: their records come with the next export. */
  readonly unfinished: number;
  /** Files that hold nothing wanted, as the manifest says. */
  readonly passedOver: number;
  readonly problems: ArchiveFiles['problems'];
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
  const isWanted = ({ line }: Source): boolean => line === null || canHoldWanted(line, selection, takes);
  const wanted = (source: Source): Source => ({
    ...source,
    pieces: source.pieces.map(wanted).filter(isWanted),
  });
  const found = new Map<string, Source>();
  const present = new Map<string, string>();
  const roots = new Set<string>();
  const gone = new Map<string, 'empty' | 'joined'>();
  const missing = new Map<string, Source>();
  const problems: ArchiveFiles['problems'][number][] = [];
  let unfinished = 0;
  let passedOver = 0;
  for (const path of paths) {
    const archive = await readArchiveFiles(path, places);
    unfinished += archive.unfinished;
    problems.push(...archive.problems);
    if (archive.isFolder) roots.add(archive.root);
    for (const source of archive.files) {
      for (const one of withPieces(source)) present.set(placeOf(one), one.sha256);
      if (isWanted(source)) found.set(placeOf(source), wanted(source));
      else passedOver += 1;
    }
    for (const { source, why } of archive.absent) {
      if (why === 'missing' && isWanted(source)) missing.set(placeOf(source), source);
      else gone.set(placeOf(source), why === 'joined' ? 'joined' : 'empty');
    }
  }
  return { sources: [...found.values()], present, roots, gone, missing, unfinished, passedOver, problems };
}

/** A file and what it is made of. */
export function withPieces(source: Source): Source[] {
  return [source, ...source.pieces.flatMap(withPieces)];
}

export function placeOf({ root, file }: Pick<Source, 'root' | 'file'>): string {
  return nameOf(root, file);
}
