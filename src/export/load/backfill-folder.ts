import { hash } from 'node:crypto';
import { hashFile } from '../../archive/facts.ts';
import { listArchive, type Places } from '../../archive/places.ts';
import type { Tables } from '../../tables/tables.ts';
import { type Archive, onceEach, readArchiveFolder } from './archives.ts';
import type { LoadOptions } from './options.ts';

/** Written last by a backfill; its folder has the files of one. */
const OUTCOMES = '_backfill.ndjson';
/** A line for each whole pull: what it asked for, and when it began. */
const PULLS = '_pulls.ndjson';

/** The archives and backfills to be loaded, each once. @throws MillraceError archive_unreadable; usage for a single file */
export async function readFolders({
  paths,
  places,
  tables,
}: Pick<LoadOptions, 'paths' | 'places' | 'tables'>): Promise<Archive[]> {
  const readFolder = async (path: string): Promise<Archive> =>
    (await readBackfillFolder(path, places, tables)) ?? (await readArchiveFolder(path, places));
  return onceEach(await Promise.all(paths.map(readFolder)));
}

/** The output folder of a backfill, as an archive of one file; null for another folder. @throws MillraceError archive_unreadable */
export async function readBackfillFolder(
  path: string,
  places: Places,
  tables: Tables,
): Promise<Archive | null> {
  if ((await (await places.open(path)).stat(OUTCOMES)) === null) return null;
  const { place, root, files, isFolder } = await listArchive(path, places);
  if (!isFolder) return null;
  const named = files.flatMap((file) => {
    const [, table] = /^([^_/][^/]*)\.ndjson$/.exec(file) ?? [];
    return table === undefined ? [] : [{ table, file }];
  });
  const rows = named.filter(({ table }) => tables.has(table));
  const pulls = files.includes(PULLS) ? { pulls: PULLS } : {};
  const hashes: string[] = [];
  for (const file of [...rows.map((one) => one.file), ...Object.values(pulls)])
    hashes.push(`${file} ${(await hashFile(place, file)).sha256}`);
  const sha256 = hash('sha256', hashes.join('\n'));
  const id = `path:${root}`;
  return {
    id,
    path: id,
    files: [{ root, file: OUTCOMES, sha256, line: null, bytes: null, day: null, pieces: [], rows, ...pulls }],
    missing: new Set(),
    unfinished: 0,
    problems: named
      .filter(({ table }) => !tables.has(table))
      .map(({ table, file }) => ({ file, reason: `there is no table ${table} (--tables)` })),
  };
}
