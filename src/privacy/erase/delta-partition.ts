import { readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { IdSearch } from './id-search.ts';
import { decodedOrSame } from '../../lib/parsed.ts';

/** The values that all rows of a data file share, by column; they are in the log, not in the file. */
export type Partition = Readonly<Record<string, string>>;

/** Without columns that are null. */
export function partitionOf(values: Readonly<Record<string, string | null>>): Partition {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  );
}

/** The partition by the folders of a file, such as `user_id=a/dt=b/x.parquet`. */
export function partitionIn(key: string): Partition {
  return Object.fromEntries(
    key.split('/').flatMap((part) => {
      const [, name, value] = /^([^=]+)=(.*)$/.exec(part) ?? [];
      return name === undefined || value === undefined ? [] : [[name, decodedOrSame(value)]];
    }),
  );
}

/** Whether one of the values names a subject. */
export function isNamedIn(partition: Partition, search: IdSearch): boolean {
  return search.finds(Buffer.from(JSON.stringify(partition)));
}

/** A file's path for reports: without partition values and texts that name a subject. */
export function itemOf(key: string, search: IdSearch): string {
  const parts = key.split('/').map((part) => {
    const at = part.indexOf('=');
    return at > 0 && isNamedIn(partitionIn(part), search) ? `${part.slice(0, at)}=*` : part;
  });
  return search.redact(parts.join('/'));
}

/** Removes empty folders of partitions that are named after a subject. */
export async function removeEmpty(root: string, search: IdSearch): Promise<void> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  const named = entries
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => isNamedIn(partitionIn(path.slice(root.length)), search));
  // The innermost first; a folder that is not empty stays.
  for (const path of named.toSorted().toReversed()) await rmdir(path).catch(() => undefined);
}
