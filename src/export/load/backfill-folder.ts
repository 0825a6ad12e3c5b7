import { createHash, hash } from 'node:crypto';
import { listArchive, type Places } from '../../archive/places.ts';
import { MillraceError } from '../../core/errors.ts';
import { countLines, cutLines } from '../../lib/lines.ts';
import { isRecord, jsonIn } from '../../lib/parsed.ts';
import { BACKFILL as OUTCOMES } from '../../tables/database/ledger.ts';
import type { Tables } from '../../tables/tables.ts';
import { type Archive, type BackfillSource, onceEach, readArchiveFolder } from './archives.ts';
import type { LoadOptions } from './options.ts';

const LINE_FEED = 10;
/** Number of rejected rows in an outcome; they have a file only where there are some. */
const REJECTS = 'rejects';
/** A line for each whole pull: what it asked for, and when it began. A backfill writes it last. */
export const PULLS = '_pulls.ndjson';
/** The folder of a backfill has both. */
const OWN = [OUTCOMES, PULLS];

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

/**
 * The output folder of a backfill, as an archive of one file; null for another folder.
 * @throws MillraceError archive_unreadable; rows_missing naming a file that the backfill has written and that is not there
 */
export async function readBackfillFolder(
  path: string,
  places: Places,
  tables: Tables,
): Promise<(Archive & { readonly files: readonly [BackfillSource] }) | null> {
  const at = await places.open(path);
  const found = await Promise.all(OWN.map((file) => at.stat(file)));
  if (found.every((file) => file === null)) return null;
  const { place, root, files, isFolder } = await listArchive(path, places);
  if (!isFolder) return null;
  const named = files.flatMap((file) => {
    const [, table] = /^([^_/][^/]*)\.ndjson$/.exec(file) ?? [];
    return table === undefined ? [] : [{ table, file }];
  });
  const rows = named.filter(({ table }) => tables.has(table));
  const expect = (file: string, why: string): void => {
    if (!files.includes(file))
      throw new MillraceError('rows_missing', `${root}/${file} is not there, and ${why}`);
  };
  for (const file of OWN) expect(file, 'the folder of a finished backfill has it');
  const said = await rowsIn(place.chunks(OUTCOMES), `${root}/${OUTCOMES}`);
  for (const table of said.keys()) expect(`${table}.ndjson`, `${OUTCOMES} names it`);
  const hashes: string[] = [];
  for (const file of [...rows.map((one) => one.file), PULLS]) {
    const { sha256, lines } = await readOnce(place.chunks(file));
    // A pull would remove the others from a database.
    const wanted = said.get(file.replace(/\.ndjson$/, '')) ?? 0;
    if (lines < wanted)
      throw new MillraceError(
        'rows_missing',
        `${root}/${file} has ${lines} rows, and ${wanted} by ${OUTCOMES}; fetch them again`,
      );
    hashes.push(`${file} ${sha256}`);
  }
  const sha256 = hash('sha256', hashes.join('\n'));
  const id = `path:${root}`;
  return {
    id,
    path: id,
    files: [{ root, file: OUTCOMES, sha256, line: null, bytes: null, day: null, pieces: [], rows }],
    missing: new Set(),
    unfinished: 0,
    problems: named
      .filter(({ table }) => !tables.has(table))
      .map(({ table, file }) => ({ file, reason: `there is no table ${table} (--tables)` })),
  };
}

async function readOnce(
  chunks: AsyncIterable<Buffer>,
): Promise<{ readonly sha256: string; readonly lines: number }> {
  const sha256 = createHash('sha256');
  let [lines, last] = [0, LINE_FEED];
  for await (const chunk of chunks) {
    sha256.update(chunk);
    lines += countLines(chunk);
    last = chunk.at(-1) ?? last;
  }
  return { sha256: sha256.digest('hex'), lines: last === LINE_FEED ? lines : lines + 1 };
}

/** The rows of the tables that a backfill has written: the numbers of its outcomes. @throws MillraceError archive_unreadable */
async function rowsIn(outcomes: AsyncIterable<Buffer>, path: string): Promise<ReadonlyMap<string, number>> {
  const tables = new Map<string, number>();
  for await (const lines of cutLines(outcomes))
    for (const { bytes, number, ended } of lines) {
      const outcome = ended && bytes !== null ? jsonIn(bytes.toString()) : null;
      if (!isRecord(outcome))
        throw new MillraceError(
          'archive_unreadable',
          `${path}, line ${number}: it is no outcome of a backfill`,
        );
      for (const [name, value] of Object.entries(outcome))
        if (typeof value === 'number' && name !== REJECTS) tables.set(name, (tables.get(name) ?? 0) + value);
    }
  return tables;
}
