import { join } from 'node:path';
import { leftBy } from '../../core/erasure.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { removeEmpty } from './delta-partition.ts';
import type { TableErasure } from './delta-table.ts';

const LOG = '_delta_log/';

/**
 * Folders of Delta tables, with a `/` at their ends; empty for the root itself.
 * @param files below a root, `/`-separated
 */
export function deltaTablesIn(files: readonly string[]): string[] {
  const found = new Set<string>();
  for (const file of files) {
    const [, table] = /^(|.*\/)_delta_log\/\d{20}\.(?:json|checkpoint.*)$/.exec(file) ?? [];
    if (table !== undefined) found.add(table);
  }
  return [...found];
}

/** Whether a file is a table's log, or its rows. */
export function isOfTable(file: string, tables: readonly string[]): boolean {
  return tables.some(
    (table) => file.startsWith(`${table}${LOG}`) || (file.startsWith(table) && file.endsWith('.parquet')),
  );
}

/** What an erasure of a Delta table is told, beside its log. */
export interface TableAbout extends Omit<TableErasure, 'log'> {
  readonly store: ObjectStore;
}

/** Takes the subjects' rows out of one Delta table; what goes wrong with it is no reason not to look at the rest. */
export async function eraseTable({ store, ...about }: TableAbout): Promise<void> {
  const { name, prefix, run, search } = about;
  // Loaded where there are any.
  const [{ DeltaLog }, { DeltaTableErasure }] = await Promise.all([
    import('../../export/delta/log.ts'),
    import('./delta-table.ts'),
  ]);
  try {
    await new DeltaTableErasure({ ...about, log: new DeltaLog(store, prefix) }).erase();
  } catch (error) {
    if (run.signal.aborted) throw error;
    run.leave(leftBy(name, search.redact(prefix), run.subjects, error));
  }
  if (!isStoreUrl(store.url)) await removeEmpty(join(store.url, prefix), search);
}
