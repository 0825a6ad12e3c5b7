import type { ObjectStore } from '../core/storage.ts';

/** Files of these that are not in a store, by a list of each table's. */
export async function notIn(
  store: ObjectStore,
  files: readonly { readonly file: string; readonly table: string }[],
  signal?: AbortSignal,
): Promise<string[]> {
  const there = new Set<string>();
  for (const table of new Set(files.map((one) => one.table)))
    for await (const { key } of store.list(`${table}/`, signal)) there.add(key);
  return files.map(({ file }) => file).filter((file) => !there.has(file));
}
