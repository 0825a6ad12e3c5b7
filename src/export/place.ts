import type { ObjectStore } from '../core/storage.ts';
import type { WrittenFile } from './outputs.ts';

/** Where an export comes to lie: the lines of its ledger, and its files. */
export interface ExportPlace {
  /** For messages. */
  readonly url: string;
  /** Local folder for what is not finished. */
  readonly work: string;
  /** The files as a store has them: below the place, under their names. */
  readonly store: ObjectStore;
  /** The ledger so far, a text a line, the oldest first. */
  lines(): AsyncIterable<string>;
  /**
   * Adds a line to the ledger; durable once it resolves.
   * @param number of lines before it
   * @throws MillraceError folder_in_use when another run has added one
   */
  append(line: object, number: number): Promise<void>;
  /**
   * Gives finished files their names, durably; those that have them already stay.
   * @returns files that are neither in the work folder nor here
   */
  put(files: readonly WrittenFile[], signal: AbortSignal): Promise<readonly WrittenFile[]>;
  /** Removes files for good; those that are gone are. @returns what is kept of them all the same, and why */
  remove(files: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
  /** Releases it. */
  close(): Promise<void>;
}

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
