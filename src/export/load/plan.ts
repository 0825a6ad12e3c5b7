import type { RecordOpener } from '../../core/sealed-record.ts';
import { REFUSED, type Load } from '../../tables/database/ledger.ts';
import type { Source } from '../archive-files.ts';
import type { Archive, LoadedSource } from './archives.ts';

/** A file to be loaded. */
export interface PlannedFile {
  /** Id of its archive. */
  readonly archive: string;
  readonly source: LoadedSource;
  /** Earlier loads of it. */
  readonly replaces: readonly number[];
}

/** What has to be done so that a database has what archives hold. */
export interface LoadPlan {
  readonly files: readonly PlannedFile[];
  /** Loads of files that are no longer in an archive. */
  readonly gone: readonly number[];
  /** Files that are loaded already. */
  readonly before: number;
  /** Files that are not there and should be; their rows stay. */
  readonly missing: readonly string[];
}

/**
 * Compares archives with what was loaded of them. The rows of a file that an erasure removed are removed; the rows of a missing
 * file, or of an emptied folder, stay, because that is a fault of the archive.
 * @param shape of the tables now
 * @param isRetry files of which rows were refused are loaded again
 */
export function planLoad(
  archives: readonly Archive[],
  loads: readonly Load[],
  shape: string,
  isRetry: boolean,
  opener?: RecordOpener,
): LoadPlan {
  const known = Map.groupBy(loads, ({ archive, file }) => `${archive} ${file}`);
  const files: PlannedFile[] = [];
  const gone: number[] = [];
  const missing: string[] = [];
  let before = 0;
  for (const { id, path, files: present, missing: absent } of archives) {
    // A folder without a manifest that has no file at all may be a disk that is not mounted.
    const isAway = id === path && present.length === 0;
    const isKnown = ({ file }: Source): boolean => known.has(`${id} ${file}`);
    for (const source of present.flatMap((one) => inPieces(one, isKnown))) {
      const earlier = known.get(`${id} ${source.file}`) ?? [];
      known.delete(`${id} ${source.file}`);
      const isSame = earlier.every((load) => isCurrent(load, source, shape, isRetry, opener));
      if (isSame && earlier.length === 1) before += 1;
      else files.push({ archive: id, source, replaces: earlier.map(({ load }) => load) });
    }
    for (const { archive, file, load } of [...known.values()].flat()) {
      if (archive !== id) continue;
      if (isAway || absent.has(file)) missing.push(file);
      else gone.push(load);
    }
  }
  return { files, gone, before, missing };
}

/** A file that was loaded before a compaction joined it with others is still that file, and the others are new. */
function inPieces(source: LoadedSource, isKnown: (file: Source) => boolean): LoadedSource[] {
  const { pieces } = source;
  const holdsKnown = ({ pieces: inner }: Source): boolean =>
    inner.some((one) => isKnown(one) || holdsKnown(one));
  return isKnown(source) || !holdsKnown(source)
    ? [source]
    : pieces.flatMap((piece) => inPieces(piece, isKnown));
}

/** False also when keys were destroyed since: a sealed archive does not say whose records are in which file. */
function isCurrent(
  load: Load,
  { sha256 }: Source,
  shape: string,
  isRetry: boolean,
  opener?: RecordOpener,
): boolean {
  if (load.sealed > 0 && (opener?.destroyed ?? 0) > load.destroyed) return false;
  const isSame = load.sha256 === sha256 || (!isRetry && load.sha256 === REFUSED + sha256);
  return isSame && load.shape === shape;
}
