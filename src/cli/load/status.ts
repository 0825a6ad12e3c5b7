import { EXIT } from '../../core/errors.ts';
import type { LoadOptions } from '../../export/load/options.ts';
import { type DatabaseState, readState } from '../../export/load/state.ts';
import { inColumns } from '../../lib/columns.ts';
import { some } from '../file-reports.ts';
import { closing, type Io, print, printReport } from '../io.ts';
import type { Target } from './target.ts';

/** Prints what a database holds; with 3 when a table is missing. */
export async function printState(
  target: Target,
  work: Pick<LoadOptions, 'paths' | 'places' | 'tables' | 'opener'>,
  options: { readonly json?: boolean | undefined; readonly metrics?: boolean | undefined },
  io: Io,
): Promise<void> {
  const state = await stateOf(target, work, io.signal);
  const ok = state.tables.every(({ present }) => present);
  if (options.metrics === true) print(io, metricsOf(state));
  else printReport(io, options, { ok, target: target.name, ...state }, () => textOf(state, target));
  if (!ok) io.setExit(EXIT.partial);
}

async function stateOf(
  target: Target,
  work: Parameters<typeof readState>[2],
  signal: AbortSignal,
): Promise<DatabaseState> {
  try {
    await using database = closing(await target.openToRead(signal));
    return await readState(database, target.name, work);
  } catch (error) {
    throw target.explain(error);
  }
}

/** The newest event of each table for the textfile collector of Prometheus' node_exporter. */
function metricsOf({ tables }: DatabaseState): string {
  const name = 'millrace_table_newest_received_timestamp_seconds';
  return [
    `# HELP ${name} When the newest event of the table was received.`,
    `# TYPE ${name} gauge`,
    ...tables.flatMap(({ table, newest_received_at: at }) =>
      at === null ? [] : [`${name}{table=${JSON.stringify(table)}} ${Date.parse(at) / 1000}`],
    ),
  ].join('\n');
}

const HEADER = ['table', 'rows', 'users', 'oldest received', 'newest received'];

function textOf({ tables, files, sinks, last_load, folders }: DatabaseState, { name }: Target): string {
  const rows = tables.map(({ table, present, rows: count, users, oldest_received_at, newest_received_at }) =>
    present
      ? [table, String(count), String(users ?? '-'), oldest_received_at ?? '-', newest_received_at ?? '-']
      : [table, 'missing: the next load makes it again'],
  );
  return [
    inColumns([HEADER, ...rows]),
    `${files} files loaded into ${name}, the last at ${last_load ?? '-'}`,
    ...some(sinks, 'sinks have written into it'),
    ...folders.flatMap(({ folder, loaded, not_loaded, removed, missing, unfinished }) => [
      `${folder}: ${loaded} files loaded, ${not_loaded} not yet`,
      ...some(removed, 'files are gone: the next load removes their rows'),
      ...some(missing, 'loaded files are missing: their rows stay'),
      ...some(unfinished, 'unfinished files of a receiver'),
    ]),
  ].join('\n');
}
