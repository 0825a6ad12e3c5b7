import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import {
  formatManifestEntry,
  hashLine,
  MANIFEST,
  OPEN_FOLDER,
  parseManifestEntry,
  type ManifestEntry,
} from '../../core/archive.ts';
import type { SinkLog } from '../../core/sink.ts';
import { CREATE, openPlain, readPlain, syncFolder, writeAll } from '../../lib/durable.ts';
import { tryLock, type FileLock } from '../../lib/file-lock.ts';
import { cutLines } from '../../lib/lines.ts';
import { Serial } from '../../lib/serial.ts';

const TAIL_BYTES = 64 * 1024;
const LINE_FEED = 10;
const LOCK_PAUSE_MS = 5;

/**
 * The manifest of one archive, for writing. It remembers nothing between calls: the last line is read again for each
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

  /** Adds a file; durable once it resolves. When it throws, the manifest is as it was. */
  append(entry: Omit<ManifestEntry, 'previous'>): Promise<void> {
    return this.#exclusively(async (handle) => {
      const { line, end } = await this.#lastLine(handle);
      const text = formatManifestEntry({ ...entry, previous: hashLine(line) });
      try {
        await writeAll(handle, Buffer.from(`${text}\n`), end);
        await handle.sync();
      } catch (error) {
        await handle.truncate(end).catch(() => undefined);
        throw error;
      }
    });
  }

  /** Of these names, the ones the manifest has a line for. Reads all of it. */
  async listed(names: ReadonlySet<string>): Promise<Set<string>> {
    const found = new Set<string>();
    if (names.size === 0) return found;
    for await (const lines of cutLines(readPlain(this.path))) {
      for (const { bytes } of lines) {
        const entry = bytes === null ? null : parseManifestEntry(bytes.toString());
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
    const path = join(this.#root, OPEN_FOLDER, 'manifest.lock');
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
