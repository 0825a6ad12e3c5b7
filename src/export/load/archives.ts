import type { Places } from '../../archive/places.ts';
import { MillraceError } from '../../core/errors.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { type ArchiveFiles, readArchiveFiles, type Source } from '../archive-files.ts';

/** The files of a backfill, which are replaced together. */
export interface BackfillSource extends Source {
  /** Its files of rows. */
  readonly rows: readonly { readonly table: string; readonly file: string }[];
}

/** A file of an archive, or a backfill. */
export type LoadedSource = Source | BackfillSource;

/** An archive, or the folder of a backfill, to be loaded. */
export interface Archive extends Pick<ArchiveFiles, 'unfinished' | 'problems'> {
  readonly files: readonly LoadedSource[];
  /** The archive's id, or its path or URL where it has no manifest. */
  readonly id: string;
  /** Its id before it had a manifest. */
  readonly path: string;
  /** Files that the manifest lists and that are not there. */
  readonly missing: ReadonlySet<string>;
}

/** @throws MillraceError archive_unreadable; usage for a single file */
export async function readArchiveFolder(path: string, places: Places): Promise<Archive> {
  const { root, isFolder, id, files, absent, unfinished, problems } = await readArchiveFiles(path, places);
  if (!isFolder)
    throw new MillraceError('usage', `${path}: name the folder of the archive, not a file of it`);
  const missing = absent.flatMap(({ source, why }) => (why === 'missing' ? [source.file] : []));
  const byPath = `path:${root}`;
  return { id: id ?? byPath, path: byPath, files, missing: new Set(missing), unfinished, problems };
}

/** Archives, each once, also if a copy of it was named: of a file in several copies the first counts. */
export function onceEach(archives: readonly Archive[]): Archive[] {
  return [...Map.groupBy(archives, ({ id }) => id).values()].flatMap((copies) => {
    const files = new Map<string, LoadedSource>();
    for (const source of copies.flatMap((copy) => copy.files)) getOrMake(files, source.file, () => source);
    const problems = new Map(
      copies.flatMap((copy) => copy.problems.map((problem) => [problem.file, problem])),
    );
    return copies.slice(0, 1).map((first) => ({
      ...first,
      files: [...files.values()],
      missing: new Set([...first.missing].filter((file) => !files.has(file))),
      unfinished: Math.max(...copies.map(({ unfinished }) => unfinished)),
      problems: [...problems.values()],
    }));
  });
}
