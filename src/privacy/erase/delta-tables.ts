import { join } from 'node:path';
import { isStoreUrl } from '../../core/place.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { removeEmpty } from './delta-partition.ts';
import type { PlaceRun } from './place-run.ts';

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

/** Whether a file belongs to a table's log, or has its rows. */
export function isOfTable(file: string, tables: readonly string[]): boolean {
  return tables.some(
    (table) => file.startsWith(`${table}${LOG}`) || (file.startsWith(table) && file.endsWith('.parquet')),
  );
}

/** Erases the subjects' rows from one Delta table. An error is reported, and other tables are still erased from. */
export async function eraseTable(place: PlaceRun, store: ObjectStore, prefix: string): Promise<void> {
  // Loaded on demand.
  const [{ DeltaLog }, { DeltaTableErasure }] = await Promise.all([
    import('../../export/delta/log.ts'),
    import('./delta-table.ts'),
  ]);
  try {
    await new DeltaTableErasure(place, new DeltaLog(store, prefix)).erase();
  } catch (error) {
    if (place.run.signal.aborted) throw error;
    place.leaveFailed(prefix, error);
  }
  if (!isStoreUrl(store.url)) await removeEmpty(join(store.url, prefix), place.search);
}
