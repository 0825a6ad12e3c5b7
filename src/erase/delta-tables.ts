import { join } from 'node:path';
import { leftBy } from '../core/erasure.ts';
import { isStoreUrl } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { removeEmpty } from './delta-partition.ts';
import type { TableErasure } from './delta-table.ts';

/** What an erasure of a Delta table is told, beside its log. */
export interface TableAbout extends Omit<TableErasure, 'log'> {
  readonly store: ObjectStore;
}

/** Takes the subjects' rows out of one Delta table; what goes wrong with it is no reason not to look at the rest. */
export async function eraseTable({ store, ...about }: TableAbout): Promise<void> {
  const { name, prefix, run, search } = about;
  // Loaded where there are any.
  const [{ DeltaLog }, { DeltaTableErasure }] = await Promise.all([
    import('../delta/log.ts'),
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
