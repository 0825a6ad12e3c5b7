import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ObjectStore } from '../core/storage.ts';
import { AppendFile } from '../lib/append-file.ts';
import { ensureFolder, errorCode, readPlain, syncFolder } from '../lib/durable.ts';
import { cutLines } from '../lib/lines.ts';
import { WorkFolder } from '../lib/work-folder.ts';
import { temporaryName, type WrittenFile } from './outputs.ts';
import type { ExportPlace } from './place.ts';

/** Lists what an export holds and what it is made of; JSON lines. Its name sets it apart from data. */
const LEDGER = '_export.jsonl';
/** Folder for what is not finished. */
export const WORK = '_work';

/** An export in a local folder, which one command at a time writes. */
export class FolderPlace implements ExportPlace {
  readonly url: string;
  readonly work: string;
  readonly store: ObjectStore;
  readonly #own: WorkFolder;
  readonly #file: AppendFile;

  private constructor(own: WorkFolder, file: AppendFile, store: ObjectStore) {
    this.url = own.path;
    this.work = join(own.path, WORK);
    this.store = store;
    this.#own = own;
    this.#file = file;
  }

  /** @throws FolderRefused, or the system's error */
  static async open(folder: string, store: ObjectStore): Promise<FolderPlace> {
    const own = await WorkFolder.take(folder);
    try {
      await ensureFolder(folder, WORK);
      const { file } = await AppendFile.openLines(join(folder, LEDGER));
      return new FolderPlace(own, file, store);
    } catch (error) {
      own.release();
      throw error;
    }
  }

  lines(): AsyncIterable<string> {
    return ledgerLines(this.url);
  }

  async append(line: object): Promise<void> {
    await this.#file.append(Buffer.from(`${JSON.stringify(line)}\n`));
  }

  async put(files: readonly WrittenFile[]): Promise<readonly WrittenFile[]> {
    const folders = new Set<string>();
    for (const { file } of files) {
      folders.add(dirname(file));
      await ensureFolder(this.url, dirname(file));
      await rename(join(this.work, temporaryName(file)), join(this.url, file)).catch((error: unknown) => {
        // It has its name already.
        if (errorCode(error) !== 'ENOENT') throw error;
      });
    }
    for (const folder of folders) await syncFolder(join(this.url, folder));
    return [];
  }

  async remove(files: readonly string[]): Promise<readonly string[]> {
    for (const file of files) await rm(join(this.url, file), { force: true });
    return [];
  }

  async close(): Promise<void> {
    await this.#file.close();
    this.#own.release();
  }
}

/** @throws the system's error when there is no export */
export async function* ledgerLines(folder: string): AsyncGenerator<string> {
  for await (const lines of cutLines(readPlain(join(folder, LEDGER)))) {
    // What has no end yet, its writer is at, or was cut short at: the next run removes it.
    for (const { bytes, ended } of lines) if (ended) yield String(bytes);
  }
}
