import { constants } from 'node:fs';
import { access, lstat, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SinkLog } from '../../core/sink.ts';
import { identityOf, isMissing, makeFolder, syncFolder } from '../../lib/durable.ts';
import { claimWriterFolders, type WriterFolder } from './writer-folders.ts';

/** The folder with the open parts, the archive's own or the spool of a store, and our writers' folders in it. */
export class OpenFolder {
  /** As configured, absolute. */
  readonly path: string;
  readonly #log: SinkLog;
  readonly #files: readonly string[];
  #root = '';
  #identity = '';
  #writers: WriterFolder[] = [];

  /** @param files in it that must be writable too */
  constructor(path: string, log: SinkLog, files: readonly string[] = []) {
    this.path = path;
    this.#log = log;
    this.#files = files;
  }

  /** The same path without links; empty before `take`. */
  get root(): string {
    return this.#root;
  }

  get writers(): readonly WriterFolder[] {
    return this.#writers;
  }

  /** Where new parts go. */
  get openFolder(): string {
    const [first] = this.#writers;
    if (first === undefined) throw new Error(`${this.path} does not exist, and could not be created again`);
    return first.path;
  }

  /** Makes the folder if it is missing, and claims every free writer's folder in it, or a new one. */
  async take(): Promise<void> {
    this.release();
    makeFolder(this.path, 0o750);
    this.#root = await realpath(this.path);
    await syncFolder(dirname(this.#root));
    this.#writers = await claimWriterFolders(this.#root, this.#log);
    this.#identity = await this.#identify();
  }

  /** Whether the path is still the folder that was taken, with the writer's folder for new parts in it. */
  async isThere(): Promise<boolean> {
    const [first] = this.#writers;
    if (first === undefined) return false;
    try {
      await lstat(first.path);
      return (await this.#identify()) === this.#identity;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  /** @throws the system's error when the folder or one of its files cannot be written now */
  async probe(): Promise<void> {
    for (const path of [this.#root, this.openFolder, ...this.#files.map((file) => join(this.#root, file))])
      await access(path, constants.W_OK);
  }

  release(): void {
    for (const { lock } of this.#writers) lock.release();
    this.#writers = [];
  }

  async #identify(): Promise<string> {
    return identityOf(await stat(this.path, { bigint: true }));
  }
}
