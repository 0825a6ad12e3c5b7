import type { RecordOpener } from '../../core/sealed-record.ts';
import type { Archive, ArchiveFile } from './archives.ts';
import { REFUSED, type Load } from '../../tables/database/ledger.ts';

/** What has to be done so that a database has what archives hold. */
export interface LoadPlan {
  /** Files to be loaded, each with the loads that it takes the place of. */
  readonly files: readonly { readonly source: ArchiveFile; readonly replaces: readonly number[] }[];
  /** Loads of files that are in no archive any more. */
  readonly gone: readonly number[];
  /** Files that are loaded as they are. */
  readonly before: number;
  /** Files that a manifest lists and that are not there: what was loaded of them stays. */
  readonly missing: readonly string[];
}

/**
 * Compares archives with what was loaded of them. A file that an erasure removed is gone; one that is only missing is a
 * fault of the archive, and no reason to lose its rows.
 * @param shape of the tables now
 * @param isRetry files of which rows were refused are loaded again: the database may take them now
 */
export function planLoad(
  archives: readonly Archive[],
  loads: readonly Load[],
  shape: string,
  isRetry: boolean,
  opener?: RecordOpener,
): LoadPlan {
  const known = Map.groupBy(loads, ({ archive, file }) => `${archive} ${file}`);
  const files: { source: ArchiveFile; replaces: number[] }[] = [];
  const gone: number[] = [];
  const missing: string[] = [];
  let before = 0;
  for (const { id, files: present, missing: absent } of archives) {
    const isKnown = ({ file }: ArchiveFile): boolean => known.has(`${id} ${file}`);
    for (const source of present.flatMap((one) => inPieces(one, isKnown))) {
      const earlier = known.get(`${id} ${source.file}`) ?? [];
      known.delete(`${id} ${source.file}`);
      const [only] = earlier;
      const isSame =
        earlier.length === 1 && only !== undefined && isCurrent(only, source, shape, isRetry, opener);
      if (isSame) before += 1;
      else files.push({ source, replaces: earlier.map(({ load }) => load) });
    }
    for (const { archive, file, load } of [...known.values()].flat()) {
      if (archive !== id) continue;
      if (absent.has(file)) missing.push(file);
      else gone.push(load);
    }
  }
  return { files, gone, before, missing };
}

/** What was loaded before a compaction joined it with others is the same file still, and the others are new. */
function inPieces(source: ArchiveFile, isKnown: (file: ArchiveFile) => boolean): ArchiveFile[] {
  const { pieces = [] } = source;
  const holdsKnown = ({ pieces: inner = [] }: ArchiveFile): boolean =>
    inner.some((one) => isKnown(one) || holdsKnown(one));
  return isKnown(source) || !holdsKnown(source)
    ? [source]
    : pieces.flatMap((piece) => inPieces(piece, isKnown));
}

/** False also when keys were destroyed since: nothing in a sealed archive tells whose records are in which file. */
function isCurrent(
  load: Load,
  { sha256 }: ArchiveFile,
  shape: string,
  isRetry: boolean,
  opener?: RecordOpener,
): boolean {
  if (load.sealed > 0 && (opener?.destroyed ?? 0) > load.destroyed) return false;
  const isSame = load.sha256 === sha256 || (!isRetry && load.sha256 === REFUSED + sha256);
  return isSame && load.shape === shape;
}
