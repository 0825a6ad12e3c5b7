import { constants } from 'node:fs';
import { copyFile, rename, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { MANIFEST, OPEN_FOLDER } from '../core/archive.ts';
import {
  formatManifestLine,
  hashLine,
  parseManifestLine,
  type NewManifestLine,
} from '../core/archive-manifest.ts';
import type { SinkLog } from '../core/sink.ts';
import {
  CREATE,
  ensureFolder,
  openPlain,
  READ_WRITE,
  readPlain,
  syncFolder,
  writeAll,
  writeNew,
} from '../lib/durable.ts';
import { tryLock, type FileLock } from '../lib/file-lock.ts';
import { cutLines } from '../lib/lines.ts';
import { Serial } from '../lib/serial.ts';

const TAIL_BYTES = 64 * 1024;
const LINE_FEED = 10;
const LOCK_PAUSE_MS = 5;

/**
 * The manifest of one archive, for writing: by the sink that makes the files, by an erasure, by a repair. It remembers nothing between calls: the last line is read again for each
 * append, under a lock, so that several writers of one archive make one chain.
 */
export class ManifestWriter {
  readonly #root: string;
  readonly #log: SinkLog;
  readonly #serial = new Serial();

  constructor(root: string, log: SinkLog) {
    this.#root = root;
    this.#log = log;
  }

  get path(): string {
    return join(this.#root, MANIFEST);
  }

  /** Cuts off a last line that a crash left incomplete. Makes the manifest if there is none. */
  repair(): Promise<void> {
    return this.#exclusively(async (handle) => {
      await this.#lastLine(handle);
    });
  }

  /**
   * Adds a line: a file that was finished, an event that was kept, what an erasure left of a file. Durable once it
   * resolves. When it throws, the manifest is as it was.
   */
  append(entry: NewManifestLine): Promise<void> {
    return this.#exclusively(async (handle) => {
      const { line, end } = await this.#lastLine(handle);
      const text = formatManifestLine(entry, hashLine(line));
      try {
        await writeAll(handle, Buffer.from(`${text}\n`), end);
        await handle.sync();
      } catch (error) {
        await handle.truncate(end).catch(() => undefined);
        throw error;
      }
    });
  }

  /**
   * Puts other lines in place of all there are; the manifest is either the one or the other at any time.
   * @param lines whole lines without their line breaks, linked
   * @param kept name, beside it, under which the manifest that was there stays
   */
  replace(lines: readonly string[], kept: string): Promise<void> {
    return this.#exclusively(async () => {
      await copyFile(this.path, join(this.#root, kept), constants.COPYFILE_EXCL);
      const copy = await openPlain(join(this.#root, kept), READ_WRITE);
      try {
        await copy.sync();
      } finally {
        await copy.close();
      }
      const temporary = join(this.#root, OPEN_FOLDER, `${MANIFEST}.tmp`);
      await rm(temporary, { force: true });
      await writeNew(temporary, Buffer.from(lines.map((line) => `${line}\n`).join('')));
      await rename(temporary, this.path);
      await syncFolder(this.#root);
    });
  }

  /** Of these names, the ones the manifest has a line for. Reads all of it. */
  async listed(names: ReadonlySet<string>): Promise<Set<string>> {
    const found = new Set<string>();
    if (names.size === 0) return found;
    for await (const lines of cutLines(readPlain(this.path))) {
      for (const { bytes } of lines) {
        const entry = bytes === null ? null : parseManifestLine(bytes.toString());
        if (entry !== null && names.has(entry.file)) found.add(entry.file);
      }
    }
    return found;
  }

  #exclusively<T>(task: (handle: FileHandle) => Promise<T>): Promise<T> {
    return this.#serial.run(async () => {
      const lock = await this.#lock();
      try {
        const handle = await this.#open();
        try {
          return await task(handle);
        } finally {
          await handle.close();
        }
      } finally {
        lock.release();
      }
    });
  }

  async #open(): Promise<FileHandle> {
    const handle = await openPlain(this.path, CREATE);
    if ((await handle.stat()).size === 0) await syncFolder(this.#root);
    return handle;
  }

  async #lock(): Promise<FileLock> {
    const path = join(await ensureFolder(this.#root, OPEN_FOLDER), 'manifest.lock');
    for (;;) {
      const lock = tryLock(path);
      if (lock !== null) return lock;
      // Another writer is appending its line, which takes as long as one fsync.
      await wait(LOCK_PAUSE_MS);
    }
  }

  /** The last complete line and where the next one goes; cuts off what stands behind it. */
  async #lastLine(handle: FileHandle): Promise<{ line: Buffer; end: number }> {
    const { size } = await handle.stat();
    let tail: Buffer = Buffer.alloc(0);
    for (let want = TAIL_BYTES; ; want *= 4) {
      const length = Math.min(want, size);
      tail = Buffer.alloc(length);
      const { bytesRead } = await handle.read(tail, 0, length, size - length);
      if (bytesRead < length) throw new Error(`${this.path} changed while it was read`);
      const last = tail.lastIndexOf(LINE_FEED);
      if (length === size || (last > 0 && tail.lastIndexOf(LINE_FEED, last - 1) !== -1)) break;
    }
    const last = tail.lastIndexOf(LINE_FEED);
    const end = size - tail.length + last + 1;
    if (end < size) {
      this.#log.warn({ file: MANIFEST, bytes: size - end }, 'cut an incomplete last line off the manifest');
      await handle.truncate(end);
      await handle.sync();
    }
    if (last === -1) return { line: Buffer.alloc(0), end };
    return { line: tail.subarray(tail.lastIndexOf(LINE_FEED, last - 1) + 1, last), end };
  }
}
