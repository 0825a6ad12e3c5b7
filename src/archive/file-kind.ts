import { CLAIMS_FOLDER, isOldParquet, MANIFEST, OPEN_FOLDER, PART_EXTENSION } from '../core/archive.ts';
import { parseSegmentKey } from '../core/archive-segments.ts';
import { type ArchiveListing, TEMPORARY_EXTENSION } from './place.ts';

/** What a file is to its archive; `ArchiveListing` says what the words mean. */
export type FileKind = 'file' | 'part' | 'claim' | 'temporary' | 'manifest';

/** @param file relative to the archive. @returns null for what is not of this archive */
export function kindOf(file: string): FileKind | null {
  const name = file.slice(file.lastIndexOf('/') + 1);
  if (file === MANIFEST || parseSegmentKey(file) !== null) return 'manifest';
  if (isUnfinished(file)) {
    if (name.endsWith(PART_EXTENSION)) return 'part';
    return name.endsWith(TEMPORARY_EXTENSION) ? 'temporary' : null;
  }
  // Whatever a query of the folder would read, whoever put it there.
  if (name.includes('.ndjson') || isOldParquet(name)) return 'file';
  if (!file.startsWith(`${CLAIMS_FOLDER}/`)) return null;
  if (name.endsWith(TEMPORARY_EXTENSION)) return 'temporary';
  return /\.json(\.gz)?$/.test(name) ? 'claim' : null;
}

/** The parts of a listing that files make up, in order of their text. */
type Kinds = Omit<ArchiveListing, 'place' | 'root' | 'isFolder' | 'aside'>;

export function byKind(files: readonly string[]): Kinds {
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

/** A file that is meant alone is one of records, whatever it is called. */
export function ofOne(...files: string[]): Pick<ArchiveListing, 'files' | 'aside'> {
  return { files, aside: [] };
}

/** Whether it lies where writers have what is not finished. */
export function isUnfinished(file: string): boolean {
  return file.startsWith(`${OPEN_FOLDER}/`);
}
