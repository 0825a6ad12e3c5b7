import { join } from 'node:path';
import type { ObjectStore } from '../core/storage.ts';
import { ensureFolder } from '../lib/durable.ts';
import { WorkFolder } from '../lib/work-folder.ts';
import type { WrittenFile } from './outputs.ts';

/** Folder of unfinished files. */
export const WORK = '_work';

/** Takes the local folder that an export is made in, for one command at a time. @throws FolderRefused, or the system's error */
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

/** Where an export is written: its log of steps, and its files. */
export abstract class ExportTarget {
  /** The files, by their names below the target. */
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

  /** Local folder of unfinished files. */
  get work(): string {
    return join(this.own.path, WORK);
  }

  /** Lines of the log, the oldest first. */
  abstract lines(): AsyncIterable<string>;
  /** Adds a line to the log, durably. @param number of lines before it @throws MillraceError folder_in_use when another run has added one */
  abstract append(line: object, number: number): Promise<void>;
  /** Gives finished files their names, durably. @returns files that are neither in the work folder nor here */
  abstract put(files: readonly WrittenFile[], signal: AbortSignal): Promise<readonly WrittenFile[]>;
  /** Deletes files permanently; missing ones are ignored. @returns what the store keeps of them, and why */
  abstract remove(files: readonly string[], signal: AbortSignal): Promise<readonly string[]>;

  async close(): Promise<void> {
    this.own.release();
    await this.store.close();
  }
}

/** Those of the files that are not in the store. */
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
