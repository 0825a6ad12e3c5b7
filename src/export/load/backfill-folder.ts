import { hash } from 'node:crypto';
import { hashFile } from '../../archive/facts.ts';
import { listArchive, type Places } from '../../archive/places.ts';
import type { Tables } from '../../tables/tables.ts';

/** Written last by a backfill; a folder with this file has the rows of one. */
const OUTCOMES = '_backfill.ndjson';
/** A line for each whole pull: what it asked for, and when it began. */
const PULLS = '_pulls.ndjson';

/** A file of rows. */
export interface RowsFile {
  readonly table: string;
  /** Relative to the folder. */
  readonly file: string;
}

/** The output folder of a backfill. Its files are replaced together, so that they are one load. */
export interface BackfillFolder {
  readonly root: string;
  /** What the ledger calls it, and the file that its load is listed under. */
  readonly id: string;
  readonly file: string;
  /** Hash of all files that are loaded. */
  readonly sha256: string;
  readonly rows: readonly RowsFile[];
  /** File of the pulls; null where there is none. */
  readonly pulls: string | null;
  /** Files that no table takes. */
  readonly problems: readonly { readonly file: string; readonly reason: string }[];
}

/** Null for another folder. @throws MillraceError archive_unreadable */
export async function readBackfillFolder(
  path: string,
  places: Places,
  tables: Tables,
): Promise<BackfillFolder | null> {
  const opened = await places.open(path);
  if ((await opened.stat(OUTCOMES)) === null) return null;
  const { place, root, files, isFolder } = await listArchive(path, places);
  if (!isFolder || !files.includes(OUTCOMES)) return null;
  const own = files.filter((file) => /^[^_/][^/]*\.ndjson$/.test(file));
  const rows = own.map((file) => ({ table: file.slice(0, -'.ndjson'.length), file }));
  const pulls = files.includes(PULLS) ? PULLS : null;
  const known = rows.filter(({ table }) => tables.has(table));
  const hashes: string[] = [];
  for (const file of [...known.map((one) => one.file), ...(pulls === null ? [] : [pulls])])
    hashes.push(`${file} ${(await hashFile(place, file)).sha256}`);
  return {
    root,
    id: `path:${root}`,
    file: OUTCOMES,
    sha256: hash('sha256', hashes.join('\n')),
    rows: known,
    pulls,
    problems: rows
      .filter(({ table }) => !tables.has(table))
      .map(({ table, file }) => ({ file, reason: `there is no table ${table} (--tables)` })),
  };
}
