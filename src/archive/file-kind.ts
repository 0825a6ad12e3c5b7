import { CLAIMS_FOLDER, isOldParquet, MANIFEST, OPEN_FOLDER, PART_EXTENSION } from '../core/archive.ts';
import { parseSegmentKey } from './segments.ts';
import { type ArchiveListing, TEMPORARY_EXTENSION } from './place.ts';

/** The lists of `ArchiveListing`, by name. */
export type FileKind = 'file' | 'part' | 'claim' | 'temporary' | 'manifest';

/** @param file relative to the archive. @returns null for a file that is not of this archive */
export function kindOf(file: string): FileKind | null {
  const name = file.slice(file.lastIndexOf('/') + 1);
  if (file === MANIFEST || parseSegmentKey(file) !== null) return 'manifest';
  if (isUnfinished(file)) {
    if (name.endsWith(PART_EXTENSION)) return 'part';
    return name.endsWith(TEMPORARY_EXTENSION) ? 'temporary' : null;
  }
  // All that a query of `*.ndjson*` reads, also files of other programs.
  if (name.includes('.ndjson') || isOldParquet(name)) return 'file';
  if (!file.startsWith(`${CLAIMS_FOLDER}/`)) return null;
  if (name.endsWith(TEMPORARY_EXTENSION)) return 'temporary';
  return /\.json(\.gz)?$/.test(name) ? 'claim' : null;
}

type FilesByKind = Omit<ArchiveListing, 'place' | 'root' | 'isFolder' | 'aside'>;

export function byKind(files: readonly string[]): FilesByKind {
  const kinds = Map.groupBy(files, (file) => kindOf(file) ?? 'other');
  const of = (kind: FileKind | 'other'): string[] => (kinds.get(kind) ?? []).toSorted();
  return {
    files: of('file'),
    parts: of('part'),
    claims: of('claim'),
    temporary: of('temporary'),
    manifest: of('manifest'),
    notFollowed: [],
    others: of('other'),
  };
}

/** Whether a file is in the folder of unfinished files. */
export function isUnfinished(file: string): boolean {
  return file.startsWith(`${OPEN_FOLDER}/`);
}
