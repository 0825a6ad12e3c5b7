import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ObjectStore } from '../core/storage.ts';
import { AppendFile } from '../lib/append-file.ts';
import { ensureFolder, errorCode, readPlain, syncFolder } from '../lib/durable.ts';
import { cutLines } from '../lib/lines.ts';
import type { WorkFolder } from '../lib/work-folder.ts';
import { temporaryName, type WrittenFile } from './outputs.ts';
import { ExportTarget, takeWorkFolder } from './export-target.ts';

/** The log of steps: JSON lines. */
const LOG = '_export.jsonl';

/** An export in a local folder, which one command at a time writes. */
export class ExportFolder extends ExportTarget {
  readonly #file: AppendFile;

  private constructor(own: WorkFolder, store: ObjectStore, file: AppendFile) {
    super(own, store);
    this.#file = file;
  }

  /** The path that was named. */
  override get url(): string {
    return this.own.path;
  }

  /** @throws FolderRefused, or the system's error */
  static async open(folder: string, store: ObjectStore): Promise<ExportFolder> {
    const own = await takeWorkFolder(folder);
    try {
      const { file } = await AppendFile.openLines(join(folder, LOG));
      return new ExportFolder(own, store, file);
    } catch (error) {
      own.release();
      throw error;
    }
  }

  lines(): AsyncIterable<string> {
    return linesInFolder(this.url);
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
        // It may have its name already.
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

  override async close(): Promise<void> {
    await this.#file.close();
    await super.close();
  }
}

/** @throws the system's error when there is no export */
export async function* linesInFolder(folder: string): AsyncGenerator<string> {
  for await (const lines of cutLines(readPlain(join(folder, LOG)))) {
    // A line without an end is being written, or was interrupted: the next run removes it.
    for (const { bytes, ended } of lines) if (ended) yield String(bytes);
  }
}
