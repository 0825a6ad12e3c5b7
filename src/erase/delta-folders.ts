import { readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { IdSearch } from '../core/id-search.ts';
import { isNamedIn, partitionIn } from './delta-partition.ts';

/** Removes the folders of a table's partitions that are called after a subject and hold no file any more. */
export async function removeEmpty(table: string, search: IdSearch): Promise<void> {
  const entries = await readdir(table, { recursive: true, withFileTypes: true }).catch(() => []);
  const named = entries
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => isNamedIn(partitionIn(path.slice(table.length)), search));
  // The innermost first; one that holds something stays.
  for (const path of named.toSorted().toReversed()) await rmdir(path).catch(() => undefined);
}
