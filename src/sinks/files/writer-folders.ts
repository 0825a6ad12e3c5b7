import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, lstat, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ERASURE, isWriterFolder, OPEN_FOLDER, WRITER_LOCK } from '../../core/archive.ts';
import type { SinkLog } from '../../core/sink.ts';
import { ensureFolder, identityOf, isMissing, makeFolder, syncFolder } from '../../lib/durable.ts';
import { ownerOf, tryOwn, type FileLock } from '../../lib/file-lock.ts';

/** A folder for unfinished files. Only the holder of the lock writes to it. */
export interface WriterFolder {
  readonly path: string;
  readonly lock: FileLock;
}

/** The folder with the open parts, the archive's own or the spool of a store, and our writers' folders in it. */
export class OpenFolder {
  /** As configured, absolute. */
  readonly path: string;
  /** The same path without links; empty before `take`. */
  root = '';
  writers: readonly WriterFolder[] = [];
  readonly #log: SinkLog;
  readonly #files: readonly string[];
  #identity = '';

  /** @param files in it that must be writable too */
  constructor(path: string, log: SinkLog, files: readonly string[] = []) {
    this.path = path;
    this.#log = log;
    this.#files = files;
  }

  /** Where new parts go. */
  get openFolder(): string {
    const [first] = this.writers;
    if (first === undefined) throw new Error(`${this.path} does not exist, and could not be created again`);
    return first.path;
  }

  /** Makes the folder if it is missing, and claims every free writer's folder in it, or a new one. */
  async take(): Promise<void> {
    this.release();
    makeFolder(this.path, 0o750);
    this.root = await realpath(this.path);
    await syncFolder(dirname(this.root));
    this.writers = await claimWriterFolders(this.root, this.#log);
    this.#identity = await this.#identify();
  }

  /** Whether the path is still the folder that was taken, with the writer's folder for new parts in it. */
  async isThere(): Promise<boolean> {
    const [first] = this.writers;
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
    for (const path of [this.root, this.openFolder, ...this.#files.map((file) => join(this.root, file))])
      await access(path, constants.W_OK);
  }

  release(): void {
    for (const { lock } of this.writers) lock.release();
    this.writers = [];
  }

  async #identify(): Promise<string> {
    return identityOf(await stat(this.path, { bigint: true }));
  }
}

/**
 * Takes every writer's folder whose writer is gone, or a new one if there is none. Folders of living writers are left alone, so
 * several processes can write one archive. Folders are kept for the next start.
 * @param root absolute
 */
export async function claimWriterFolders(root: string, log: SinkLog): Promise<WriterFolder[]> {
  const parent = await ensureFolder(root, OPEN_FOLDER);
  const claimed: WriterFolder[] = [];
  try {
    for (const entry of await readdir(parent, { withFileTypes: true })) {
      if (!isWriterFolder(entry.name)) continue;
      if (!entry.isDirectory()) {
        log.warn({ path: join(parent, entry.name) }, 'not a folder; not followed');
        continue;
      }
      // Syncs its name: the process that made it may have been killed before that.
      const path = await ensureFolder(root, `${OPEN_FOLDER}/${entry.name}`);
      const lock = tryOwn(join(path, WRITER_LOCK));
      // Only for a while: left to it, the files of this folder would stay open until the next start.
      if (lock === null && ownerOf(join(path, WRITER_LOCK))?.startsWith(ERASURE) === true)
        throw new Error(`an erasure is in ${path}; the sink is opened after it`);
      if (lock === null) log.info({ path }, 'another writer uses this archive');
      else claimed.push({ path, lock });
    }
    while (claimed.length === 0) {
      const name = randomBytes(6).toString('hex');
      const path = await ensureFolder(root, `${OPEN_FOLDER}/${name}`);
      const lock = tryOwn(join(path, WRITER_LOCK));
      if (lock !== null) claimed.push({ path, lock });
    }
  } catch (error) {
    for (const { lock } of claimed) lock.release();
    throw error;
  }
  return claimed;
}

/** True for the files of the lock, in the top level of a writer's folder. */
export function isLockFile(name: string): boolean {
  return name === WRITER_LOCK || name.startsWith(`${WRITER_LOCK}-`);
}
