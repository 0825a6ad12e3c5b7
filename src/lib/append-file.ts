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
import { lastEnd, lineBefore } from './tail.ts';

const LINE_BREAK = Buffer.from('\n');

/** Somebody has removed, replaced or cut a file: what it holds is not what was written any more. */
export class FileGone extends Error {
  constructor(path: string) {
    super(`${path} was removed, replaced or truncated by another program`);
    this.name = 'FileGone';
  }
}

/**
 * A file that grows at its end. `length` bytes of it are durable; what lies beyond was never acknowledged.
 *
 * Modes: `open` (it has a handle) → `suspect` (it has none) when a write or sync fails, so that what lies beyond `length` is
 * unknown and the handle cannot be trusted (the kernel reports a failed sync once, then forgets it), and when its handle is
 * released; `suspect` → `open` by the next write, on a new handle, after cutting the file back to `length`; any →
 * `closed`, for good. It begins as `suspect`.
 */
export class AppendFile {
  readonly path: string;
  readonly #syncs: boolean;
  #mode: 'open' | 'suspect' | 'closed' = 'suspect';
  #handle: FileHandle | null = null;
  #length: number;
  /** Number of the file on its device, once it was opened. */
  #identity: string | null = null;
  readonly #serial = new Serial();
  /** What the next write takes. */
  #group: { readonly pieces: Buffer[]; readonly written: Promise<void> } | null = null;
  /** Whether something was written that no sync has followed. */
  #isUnsynced = false;
  /** Whether bytes may lie beyond `length`: a write has failed, and cutting them off can have failed as well. */
  #hasTail = false;

  /**
   * @param length bytes that are durable, in a file that is there or that `create` is to make
   * @param syncs false where what is appended need not be on disk before `close` has resolved
   */
  constructor(path: string, length: number, syncs = true) {
    this.path = path;
    this.#length = length;
    this.#syncs = syncs;
  }

  /**
   * Opens a file of lines, and makes it if there is none.
   * @param torn what becomes of an incomplete last line, as a crash leaves it: it is cut off, or its line is ended
   * @returns `cut`: bytes that were cut off
   * @throws NotFollowed, or the system's error
   */
  static async openLines(
    path: string,
    mode?: number,
    torn: 'cut' | 'end' = 'cut',
  ): Promise<{ file: AppendFile; cut: number }> {
    const handle = await openPlain(path, CREATE, mode);
    try {
      const { size } = await handle.stat();
      if (size === 0) await syncFolder(dirname(path));
      const end = await lastEnd(handle, size);
      const file = new AppendFile(path, torn === 'cut' ? end : size);
      await file.#take(handle);
      if (end < size && torn === 'end') await file.append(LINE_BREAK);
      // Lines of a process that was killed before its sync can be read, and a power cut can still take them from under us.
      else if (end === size && size > 0) await handle.datasync();
      return { file, cut: file.length < size ? await file.mend() : 0 };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Bytes that are durable; without syncs, those that will be. */
  get length(): number {
    return this.#length;
  }

  get mode(): 'open' | 'suspect' | 'closed' {
    return this.#mode;
  }

  /** Makes the file, empty and with a durable name, or leaves none. Its folder must exist. */
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
   * Adds bytes; once it resolves they are on disk, unless it does without syncs. Calls that wait at the same time share a sync. When it throws, none of
   * these bytes counts.
   * @throws FileGone; NotFollowed, or the system's error
   */
  append(...pieces: readonly Buffer[]): Promise<void> {
    this.#group ??= this.#nextGroup();
    for (const piece of pieces) this.#group.pieces.push(piece);
    return this.#group.written;
  }

  /** Writes over bytes that are there. @throws as `append` does; what stands there then is either the old or the new, or a part of each */
  overwrite(bytes: Buffer, position: number): Promise<void> {
    return this.#serial.run(() => this.#commit((handle) => writeAll(handle, bytes, position)));
  }

  /** Cuts off what lies beyond `length`, and makes sure of the rest. @returns bytes that were cut off */
  mend(): Promise<number> {
    return this.#serial.run(async () => {
      const { size } = await lstat(this.path);
      await this.#commit((handle) => handle.truncate(this.#length));
      return size - this.#length;
    });
  }

  /**
   * Makes sure that nothing lies beyond `length` of a file that nothing is added to any more: who reads it after a crash would take
   * whole lines there for written.
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

  /** Whether what its path names is still this file, with all that was written to it. */
  async isThere(): Promise<boolean> {
    try {
      const stats = await lstat(this.path, { bigint: true });
      return stats.size >= this.#length && identityOf(stats) === (this.#identity ?? identityOf(stats));
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  /** Gives the handle back; the next write opens the file again. */
  release(): Promise<void> {
    return this.#serial.run(() => this.#letGo('suspect'));
  }

  /** For good, after what was handed in before. @throws without syncs, what keeps it from being on disk */
  close(): Promise<void> {
    return this.#serial.run(async () => {
      try {
        if (this.#isUnsynced) await (this.#handle ?? (await this.#reopen())).datasync();
        this.#isUnsynced = false;
      } finally {
        await this.#letGo('closed');
      }
    });
  }

  /** For work on what is added that costs no time meanwhile. */
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
    // A file without its name takes bytes as any other, and one that was cut takes them behind a hole. What goes after this
    // look is missed by the next one.
    if (!(await this.isThere())) throw new FileGone(this.path);
    try {
      await write(handle);
      if (this.#syncs) await handle.datasync();
      else this.#isUnsynced = true;
    } catch (error) {
      this.#hasTail = true;
      // Cut off what was not made durable, as far as the disk still lets us.
      await handle.truncate(this.#length).catch(() => undefined);
      await this.#letGo('suspect').catch(() => undefined);
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

  async #letGo(mode: 'suspect' | 'closed'): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    if (this.#mode !== 'closed') this.#mode = mode;
    await handle?.close();
  }
}
