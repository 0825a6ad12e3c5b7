import type { IdSearch } from '../../core/id-search.ts';
import { decodedOrSame } from '../../lib/parsed.ts';
import { readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';

/** The values that all rows of a data file share, by column: the log has them, and not the file. */
export type Partition = Readonly<Record<string, string>>;

/** Without columns that are null. */
export function partitionOf(values: Readonly<Record<string, string | null>>): Partition {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  );
}

/** As the folders of a file have them that no version lists any more. @param key `user_id=a/dt=b/x.parquet` */
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

/** A file's path as it goes on record: without values that name a subject, however they are written there. */
export function itemOf(key: string, search: IdSearch): string {
  const parts = key.split('/').map((part) => {
    const at = part.indexOf('=');
    return at > 0 && isNamedIn(partitionIn(part), search) ? `${part.slice(0, at)}=*` : part;
  });
  return search.redact(parts.join('/'));
}

/** Removes the folders of partitions that are called after a subject and hold no file any more. */
export async function removeEmpty(root: string, search: IdSearch): Promise<void> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  const named = entries
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => isNamedIn(partitionIn(path.slice(root.length)), search));
  // The innermost first; one that holds something stays.
  for (const path of named.toSorted().toReversed()) await rmdir(path).catch(() => undefined);
}
