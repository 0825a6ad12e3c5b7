import { join } from 'node:path';
import { hashFile } from '../archive/facts.ts';
import { listArchive } from '../archive/list.ts';
import { readManifest } from '../archive/manifest.ts';
import { canHoldWanted, type Selection, type TakesType } from './select.ts';

/** A finished file of an archive, as it is now. */
export interface Source {
  /** The archive's folder, absolute. */
  readonly root: string;
  /** Relative to `root`, `/`-separated. */
  readonly file: string;
  /** Of the bytes on disk, as the manifest says it; read from the file where no manifest does. */
  readonly sha256: string;
}

/** The files to be read, and what was left out. */
export interface SourceList {
  readonly sources: readonly Source[];
  /** SHA-256 of every finished file there is, wanted or not, by `root` and `file` joined. */
  readonly present: ReadonlyMap<string, string>;
  /** Folders that were listed whole: what is not present below them is gone. */
  readonly roots: ReadonlySet<string>;
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
  selection: Selection,
  takes: TakesType,
): Promise<SourceList> {
  const found = new Map<string, Source>();
  const present = new Map<string, string>();
  const roots = new Set<string>();
  const problems: { file: string; reason: string }[] = [];
  let unfinished = 0;
  let passedOver = 0;
  for (const path of paths) {
    const { root, files, parts, notFollowed, hasManifest, isFolder } = await listArchive(path);
    unfinished += parts.length;
    if (isFolder) roots.add(root);
    for (const file of notFollowed) problems.push({ file, reason: 'not a plain file; not followed' });
    const entries = hasManifest ? (await readManifest(root)).entries : new Map<string, never>();
    for (const file of files) {
      const at = join(root, file);
      const entry = entries.get(file);
      const listed = entry !== undefined && 'types' in entry ? entry : null;
      const sha256 = listed?.sha256 ?? (await hashFile(at)).sha256;
      present.set(at, sha256);
      if (listed !== null && !canHoldWanted(listed, selection, takes)) passedOver += 1;
      else found.set(at, { root, file, sha256 });
    }
  }
  return { sources: [...found.values()], present, roots, unfinished, passedOver, problems };
}
