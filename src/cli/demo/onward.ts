import { parquetReadObjects } from 'hyparquet';
import type { Places } from '../../archive/places.ts';
import { MillraceError } from '../../core/errors.ts';
import { DeltaLog } from '../../delta/log.ts';
import { DECOMPRESS } from '../../parquet/stored-pages.ts';
import { storedFile } from '../../delta/stored-file.ts';
import { runExport } from '../../export/run.ts';
import { destinationsOf } from '../../replay/destinations.ts';
import { dryRun } from '../../replay/dry-run.ts';
import { listPath } from '../../replay/list.ts';
import { FileReader } from '../../replay/read-file.ts';
import { createValidator, DEFAULT_ENVELOPE } from '../../validate/envelope.ts';
import { TABLES } from '../../warehouse/tables.ts';
import { withStore } from '../places.ts';
import type { DemoStore } from './store.ts';
import { unfinished } from './child.ts';

/** What became of the objects of an archive. */
export interface Onward {
  /** Events that a replay of them would send. */
  readonly replayed: number;
  /** Rows read back from the Delta table that was made of them. */
  readonly rows: number;
  /** URL of that table. */
  readonly table: string;
  readonly problems: readonly string[];
}

interface Given {
  readonly archive: string;
  readonly places: Places;
  /** Ids of all events that must be in it. */
  readonly ids: ReadonlySet<string>;
  /** Folder for what is not finished. */
  readonly work: string;
  readonly signal: AbortSignal;
}

/** Counts what a replay of the archive would send, exports it to a Delta table, and compares that with what came in. */
export async function sendOnward({ url, storage }: DemoStore, given: Given): Promise<Onward> {
  const { archive, places, ids, work, signal } = given;
  const problems: string[] = [];
  const replayed = await replayedFrom(archive, places, problems, signal);
  if (replayed !== ids.size) problems.push(`a replay would send ${replayed} events of ${ids.size}`);
  const out = `${url}/export`;
  await runExport({
    paths: [archive],
    places,
    out,
    work,
    storage,
    tables: TABLES,
    table: 'events',
    format: 'delta',
    compression: 'gzip',
    partition: 'dt',
    selection: { since: null, until: null, types: [], teams: [], users: [] },
    stepBytes: Number.POSITIVE_INFINITY,
    again: false,
    signal,
    onProgress: () => undefined,
    onProblem: (file, _line, reason) => void problems.push(`${file}: ${reason}`),
    onReject: ({ file, reason }) => void problems.push(`${file}: ${reason}`),
    onUnknown: () => undefined,
  });
  if (signal.aborted) throw unfinished();
  const rows = await idsIn({ url: out, storage }, signal);
  const missing = ids.difference(new Set(rows)).size;
  if (missing > 0 || rows.length !== ids.size)
    problems.push(`the table has ${rows.length} rows for ${ids.size} events, and ${missing} are missing`);
  return { replayed, rows: rows.length, table: `${out}/events`, problems };
}

async function replayedFrom(
  archive: string,
  places: Places,
  problems: string[],
  signal: AbortSignal,
): Promise<number> {
  const selection = { types: [], teams: [], users: [], since: null, until: null };
  const files = new FileReader({
    places,
    selection,
    validate: createValidator(DEFAULT_ENVELOPE),
    opener: undefined,
    isErased: () => false,
  });
  const { counts } = await dryRun(
    listPath(archive, { places, selection, onPassedOver: () => undefined }),
    {
      read: (unit, from, reading) => {
        if (unit.kind === 'file') return files.read(unit, from, reading);
        throw new MillraceError('archive_unreadable', `${archive} holds what cannot be replayed`);
      },
      destinations: destinationsOf(
        () => [{ sink: 'stdout', destination: null }],
        [],
        () => [],
      ),
      pseudonymiser: (event) => event,
      onProblem: ({ where, reason }) => void problems.push(`${where}: ${reason}`),
    },
    signal,
  );
  return counts.targets['stdout'] ?? 0;
}

/** The id in each row of the table, read from the files that its log names. */
async function idsIn({ url, storage }: Omit<DemoStore, 'stop'>, signal: AbortSignal): Promise<string[]> {
  return withStore(`${url}/events`, storage, async (store) => {
    const { files } = await new DeltaLog(store, '').snapshot(signal);
    const ids: string[] = [];
    for (const { path, size } of files.values()) {
      const file = storedFile(store, decodeURIComponent(path), size, signal);
      const rows = await parquetReadObjects({ file, columns: ['_event_id'], compressors: DECOMPRESS });
      for (const row of rows) ids.push(String(row['_event_id']));
    }
    return ids;
  });
}
