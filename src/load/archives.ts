import { join } from 'node:path';
import { hashFile } from '../archive/facts.ts';
import { listArchive } from '../archive/list.ts';
import { readManifest } from '../archive/manifest.ts';
import { MillraceError } from '../core/errors.ts';

/** A finished file of an archive, as it is now. */
export interface ArchiveFile {
  readonly archive: string;
  readonly root: string;
  /** Relative to `root`. */
  readonly file: string;
  readonly sha256: string;
}

/** One archive as it lies there. */
export interface Archive {
  /** What it is known by, wherever it lies: the hash of its manifest's first line; its path where there is no manifest. */
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
export async function readArchiveFolder(path: string): Promise<Archive> {
  const { root, files, parts, notFollowed, hasManifest, isFolder } = await listArchive(path);
  if (!isFolder)
    throw new MillraceError('usage', `${path}: name the folder of the archive, not a file of it`);
  const manifest = hasManifest ? await readManifest(root) : null;
  const entries = manifest?.entries ?? new Map<string, never>();
  const [first] = manifest?.hashes.keys() ?? [];
  const byPath = `path:${root}`;
  const id = first ?? byPath;
  const present = new Set(files);
  const found: ArchiveFile[] = [];
  for (const file of files) {
    const entry = entries.get(file);
    const sha256 = entry?.sha256 ?? (await hashFile(join(root, file))).sha256;
    found.push({ archive: id, root, file, sha256 });
  }
  const missing = [...entries].flatMap(([file, { sha256 }]) =>
    sha256 === null || present.has(file) ? [] : [file],
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
