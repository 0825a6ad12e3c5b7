import { lstat, unlink, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  CREATE,
  CREATE_NEW,
  identityOf,
  isMissing,
  naming,
  openPlain,
  READ_WRITE,
  syncFolder,
  writeAll,
  writePieces,
} from './durable.ts';
import { Serial } from './serial.ts';
import { endOfComplete, lineBefore, readTail } from './tail.ts';

const LINE_BREAK = Buffer.from('\n');

/** Another program has removed, replaced or truncated a file. */
export class FileGone extends Error {
  constructor(path: string) {
    super(`${path} was removed, replaced or truncated by another program`);
    this.name = 'FileGone';
  }
}

/**
 * A file that grows at its end. `length` bytes of it are durable; bytes beyond were never acknowledged.
 *
 * Modes: suspect, the first one (no handle; bytes may lie beyond `length`) → open (a handle), by the next write, which truncates the
 * file to `length`. open → suspect, by `release`, or when a write or sync fails: the kernel reports a failed sync only once, so that
 * the handle cannot be trusted. Either → closed.
 */
export class AppendFile {
  readonly path: string;
  readonly #syncs: boolean;
  #mode: 'open' | 'suspect' | 'closed' = 'suspect';
  #handle: FileHandle | null = null;
  #length: number;
  /** As `identityOf`, once the file was opened. */
  #identity: string | null = null;
  readonly #serial = new Serial();
  /** The pieces of the next write. */
  #group: { readonly pieces: Buffer[]; readonly written: Promise<void> } | null = null;
  /** True when something was written and not synced. */
  #isUnsynced = false;
  /** True when bytes may lie beyond `length`: a write has failed, and truncating may have failed too. */
  #hasTail = false;

  /**
   * @param length durable bytes of the existing file; 0 for one that `create` makes
   * @param syncs false when appended bytes need not be on disk before `close` has resolved
   */
  constructor(path: string, length: number, syncs = true) {
    this.path = path;
    this.#length = length;
    this.#syncs = syncs;
  }

  /**
   * Opens a file of lines, or makes it.
   * @param endOf where what counts ends, by the end of the file and its position: the rest is cut off; a last line that counts
   * gets the line break that it lacks
   * @returns `cut`: number of bytes cut off
   * @throws NotFollowed, or the system's error
   */
  static async openLines(
    path: string,
    mode?: number,
    endOf: (bytes: Buffer, from: number) => number = endOfComplete,
  ): Promise<{ file: AppendFile; cut: number }> {
    const handle = await openPlain(path, CREATE, mode);
    try {
      const { size } = await handle.stat();
      if (size === 0) await syncFolder(dirname(path));
      const { bytes, from } = await readTail(handle, size);
      const end = endOf(bytes, from);
      const file = new AppendFile(path, end);
      await file.#take(handle);
      if (end < size) return { file, cut: await file.mend() };
      if (size > 0 && !bytes.subarray(-1).equals(LINE_BREAK)) await file.append(LINE_BREAK);
      // Lines of a process that was killed before its sync are there, and a power cut can still lose them.
      else if (size > 0) await handle.datasync();
      return { file, cut: 0 };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Durable bytes; without syncs, bytes that `close` makes durable. */
  get length(): number {
    return this.#length;
  }

  get mode(): 'open' | 'suspect' | 'closed' {
    return this.#mode;
  }

  /** Makes an empty file with a durable name; when it throws, there is none. Its folder must exist. */
  async create(): Promise<void> {
    const handle = await openPlain(this.path, CREATE_NEW);
    try {
      await syncFolder(dirname(this.path));
      await this.#take(handle);
    } catch (error) {
      await handle.close().catch(() => undefined);
      await unlink(this.path).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Adds bytes, which are on disk once it resolves (unless `syncs` is false). Calls that wait at the same time share a sync. When it
   * throws, none of the bytes was added.
   * @throws FileGone; NotFollowed, or the system's error
   */
  append(...pieces: readonly Buffer[]): Promise<void> {
    this.#group ??= this.#nextGroup();
    for (const piece of pieces) this.#group.pieces.push(piece);
    return this.#group.written;
  }

  /** Replaces bytes. @throws as `append`; then some of them may be the old ones */
  overwrite(bytes: Buffer, position: number): Promise<void> {
    return this.#serial.run(() => this.#commit((handle) => writeAll(handle, bytes, position)));
  }

  /** Truncates to `length`, and syncs. @returns the number of bytes cut off */
  mend(): Promise<number> {
    return this.#serial.run(async () => {
      const { size } = await lstat(this.path);
      await this.#commit((handle) => handle.truncate(this.#length));
      return size - this.#length;
    });
  }

  /**
   * Truncates a complete file to `length` if a write has failed: complete lines beyond it would be read as written after a crash.
   * @throws the system's error
   */
  trim(): Promise<void> {
    return this.#serial.run(async () => {
      if (!this.#hasTail) return;
      const handle = await openPlain(this.path, READ_WRITE);
      try {
        await handle.truncate(this.#length);
        await handle.datasync();
      } finally {
        await handle.close();
      }
      this.#hasTail = false;
    });
  }

  /** The line whose line break ends at `end`, without it; empty at the beginning of the file. */
  lineBefore(end: number): Promise<Buffer> {
    return this.#serial.run(async () => lineBefore(this.#handle ?? (await this.#reopen()), end));
  }

  /** True while its path leads to this file, with all that was written to it. */
  async isThere(): Promise<boolean> {
    try {
      const stats = await lstat(this.path, { bigint: true });
      return stats.size >= this.#length && identityOf(stats) === (this.#identity ?? identityOf(stats));
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  /** Closes the handle; the next write opens the file again. */
  release(): Promise<void> {
    return this.#serial.run(() => this.#closeHandle('suspect'));
  }

  /** Closes the file after pending writes. @throws an error of the sync, when `syncs` is false */
  close(): Promise<void> {
    return this.#serial.run(async () => {
      try {
        if (this.#isUnsynced) await (this.#handle ?? (await this.#reopen())).datasync();
        this.#isUnsynced = false;
      } finally {
        await this.#closeHandle('closed');
      }
    });
  }

  /** Called during each write, for work on the pieces that then takes no extra time. */
  protected whileWriting(_pieces: readonly Buffer[]): void {}

  #nextGroup(): { readonly pieces: Buffer[]; readonly written: Promise<void> } {
    const pieces: Buffer[] = [];
    const written = this.#serial.run(async () => {
      this.#group = null;
      let added = 0;
      await this.#commit(async (handle) => {
        const writing = writePieces(handle, pieces, this.#length);
        this.whileWriting(pieces);
        added = await writing;
      });
      this.#length += added;
    });
    return { pieces, written };
  }

  async #commit(write: (handle: FileHandle) => Promise<void>): Promise<void> {
    const handle = this.#handle ?? (await this.#reopen());
    // A removed file accepts writes like any other, and a truncated one gets a hole. The next write finds what happens after this.
    if (!(await this.isThere())) throw new FileGone(this.path);
    try {
      await write(handle);
      if (this.#syncs) await handle.datasync();
      else this.#isUnsynced = true;
    } catch (error) {
      this.#hasTail = true;
      await handle.truncate(this.#length).catch(() => undefined);
      await this.#closeHandle('suspect').catch(() => undefined);
      throw naming(this.path, error);
    }
  }

  async #reopen(): Promise<FileHandle> {
    if (this.#mode === 'closed') throw new Error(`${this.path} is closed`);
    const handle = await openPlain(this.path, READ_WRITE).catch((error: unknown) => {
      throw isMissing(error) ? new FileGone(this.path) : error;
    });
    try {
      if (!(await this.isThere())) throw new FileGone(this.path);
      await handle.truncate(this.#length);
      return await this.#take(handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async #take(handle: FileHandle): Promise<FileHandle> {
    this.#identity = identityOf(await handle.stat({ bigint: true }));
    this.#handle = handle;
    this.#mode = 'open';
    return handle;
  }

  async #closeHandle(mode: 'suspect' | 'closed'): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    if (this.#mode !== 'closed') this.#mode = mode;
    await handle?.close();
  }
}
