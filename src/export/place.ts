import { join } from 'node:path';
import type { ObjectStore } from '../core/storage.ts';
import { ensureFolder } from '../lib/durable.ts';
import { WorkFolder } from '../lib/work-folder.ts';
import type { WrittenFile } from './outputs.ts';

/** Folder for what is not finished. */
export const WORK = '_work';

/** Takes the local folder that an export is made in; one command at a time has it. @throws FolderRefused, or the system's error */
export async function takeWorkFolder(folder: string): Promise<WorkFolder> {
  const own = await WorkFolder.take(folder);
  try {
    await ensureFolder(folder, WORK);
    return own;
  } catch (error) {
    own.release();
    throw error;
  }
}

/** Where an export comes to lie: the lines of its ledger, and its files. */
export abstract class ExportPlace {
  /** The files as a store has them: below the place, under their names. */
  readonly store: ObjectStore;
  protected readonly own: WorkFolder;

  constructor(own: WorkFolder, store: ObjectStore) {
    this.own = own;
    this.store = store;
  }

  /** For messages. */
  get url(): string {
    return this.store.url;
  }

  /** Local folder for what is not finished. */
  get work(): string {
    return join(this.own.path, WORK);
  }

  /** The ledger so far, a text a line, the oldest first. */
  abstract lines(): AsyncIterable<string>;
  /**
   * Adds a line to the ledger; durable once it resolves.
   * @param number of lines before it
   * @throws MillraceError folder_in_use when another run has added one
   */
  abstract append(line: object, number: number): Promise<void>;
  /**
   * Gives finished files their names, durably; those that have them already stay.
   * @returns files that are neither in the work folder nor here
   */
  abstract put(files: readonly WrittenFile[], signal: AbortSignal): Promise<readonly WrittenFile[]>;
  /** Removes files for good; those that are gone are. @returns what is kept of them all the same, and why */
  abstract remove(files: readonly string[], signal: AbortSignal): Promise<readonly string[]>;

  /** Releases it. */
  async close(): Promise<void> {
    this.own.release();
    await this.store.close();
  }
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
