import { MillraceError } from '../../core/errors.ts';
import { presentColumns } from '../../tables/database/columns.ts';
import { type Database, inTransaction } from '../../tables/database/database.ts';
import { LEDGER, ledgerIn, readLoads } from '../../tables/database/ledger.ts';
import { entriesOf, notedTables, shapeOfAll } from '../../tables/database/tables.ts';
import { tableName } from '../../tables/sql/dialects/dialect.ts';
import { readFolders } from './backfill-folder.ts';
import type { LoadOptions } from './options.ts';
import { planLoad } from './plan.ts';

/** A table that loads keep up to date. */
interface TableState {
  readonly table: string;
  /** False for one that somebody has dropped: the next load makes it again. */
  readonly present: boolean;
  readonly rows: number;
  /** Different users; null for a table without users. */
  readonly users: number | null;
  /** When its events were received, ISO 8601; null where no row is of an event. */
  readonly oldest_received_at: string | null;
  readonly newest_received_at: string | null;
}

/** An archive or a backfill beside a database. */
interface FolderState {
  readonly folder: string;
  readonly loaded: number;
  /** Files that the next load loads: new ones, changed ones, and those of which rows were refused. */
  readonly not_loaded: number;
  /** Loaded files that are in the folder no more: the next load removes their rows. */
  readonly removed: number;
  /** Files that a manifest lists and that are not there; their rows stay. */
  readonly missing: number;
  /** Files of a receiver that are not closed. */
  readonly unfinished: number;
}

export interface DatabaseState {
  readonly tables: readonly TableState[];
  /** Loaded files of all archives and backfills, and sinks that have written. */
  readonly files: number;
  readonly sinks: number;
  /** When the newest file was loaded, ISO 8601. */
  readonly last_load: string | null;
  readonly folders: readonly FolderState[];
}

type StateOptions = Pick<LoadOptions, 'paths' | 'places' | 'tables' | 'opener'>;

/**
 * What a database holds, and how much of archives and backfills. Changes nothing.
 * @param where names the database in errors
 * @throws MillraceError database_not_loaded; archive_unreadable; usage for a table without a definition, if a folder is named
 */
export function readState(database: Database, where: string, options: StateOptions): Promise<DatabaseState> {
  return inTransaction(database, async () => {
    // So that all counts are of one moment.
    if (database.dialect === 'postgres')
      await database.run('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
    const present = await presentColumns(database);
    const absent = LEDGER.filter((table) => !present.has(table));
    if (absent.length > 0)
      throw new MillraceError(
        'database_not_loaded',
        `${where} has no table ${absent.join(' and no table ')}`,
      );
    const noted = [...(await notedTables(database)).keys()];
    const tables: TableState[] = [];
    for (const table of noted) tables.push(await tableState(database, table, present.get(table)));
    const { loads } = ledgerIn(database);
    const [[files, sinks, last] = []] = await database.query(`
      SELECT count(*) FILTER (WHERE file <> ''), count(*) FILTER (WHERE file = ''),
        ${millis(`max(loaded_at) FILTER (WHERE file <> '')`)} FROM ${loads}`);
    const folders = await folderStates(database, noted, options);
    return { tables, files: Number(files), sinks: Number(sinks), last_load: isoOf(last), folders };
  });
}

async function tableState(
  database: Database,
  table: string,
  present: readonly { readonly name: string }[] | undefined,
): Promise<TableState> {
  const columns = present?.map(({ name }) => name);
  const received = ['_received_at', 'received_at'].find((name) => columns?.includes(name));
  const bounds =
    received === undefined ? ['NULL', 'NULL'] : ['min', 'max'].map((of) => millis(`${of}(${received})`));
  const users = columns?.includes('user_id') === true ? 'count(DISTINCT user_id)' : 'NULL';
  const [[rows, ids, oldest, newest] = []] =
    columns === undefined
      ? []
      : await database.query(
          `SELECT count(*), ${users}, ${bounds.join(', ')} FROM ${tableName(database.sql, table)}`,
        );
  return {
    table,
    present: columns !== undefined,
    rows: Number(rows ?? 0),
    users: ids === null || ids === undefined ? null : Number(ids),
    oldest_received_at: isoOf(oldest),
    newest_received_at: isoOf(newest),
  };
}

async function folderStates(
  database: Database,
  noted: readonly string[],
  options: StateOptions,
): Promise<FolderState[]> {
  const { paths, tables: known, opener } = options;
  if (paths.length === 0) return [];
  const archives = await readFolders(options);
  const shape = shapeOfAll(entriesOf(known, noted));
  const loads = await readLoads(database);
  const opened = await opener?.();
  return archives.map((archive) => {
    const { id, path, unfinished } = archive;
    const own = loads.map((load) => (load.archive === path ? { ...load, archive: id } : load));
    const { before, files, gone, missing } = planLoad([archive], own, shape, true, opened);
    return {
      folder: path.replace(/^path:/, ''),
      loaded: before,
      not_loaded: files.length,
      removed: gone.length,
      missing: missing.length,
      unfinished,
    };
  });
}

function millis(time: string): string {
  return `CAST(floor(extract(epoch FROM ${time}) * 1000) AS bigint)`;
}

function isoOf(ms: unknown): string | null {
  return ms === null || ms === undefined ? null : new Date(Number(ms)).toISOString();
}
