import { lstat, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DATA_EXTENSIONS, PART_EXTENSION, type Compression } from '../../core/archive.ts';
import type { Event } from '../../core/event.ts';
import {
  CREATE_NEW,
  identityOf,
  isMissing,
  openPlain,
  syncFolder,
  WRITE,
  writeAll,
} from '../../lib/durable.ts';
import { NumberRuns } from '../../lib/number-runs.ts';

/** What the manifest will say about the records of a file. */
export class PartStats {
  records = 0;
  firstReceivedAt = Number.POSITIVE_INFINITY;
  lastReceivedAt = Number.NEGATIVE_INFINITY;
  readonly types = new Map<string, number>();

  /** @param receivedAt milliseconds since the epoch */
  add(type: string, receivedAt: number): void {
    this.records += 1;
    this.types.set(type, (this.types.get(type) ?? 0) + 1);
    if (receivedAt < this.firstReceivedAt) this.firstReceivedAt = receivedAt;
    if (receivedAt > this.lastReceivedAt) this.lastReceivedAt = receivedAt;
  }
}

/** Where a part lies and what its finished file will be called. */
export interface PartPlace {
  /** The writer's folder for unfinished files, absolute. */
  readonly openFolder: string;
  /** Folder below the archive, `/`-separated, the same below `openFolder`. */
  readonly folder: string;
  /** File name without extension, unique in the archive. */
  readonly stem: string;
}

/** Somebody has removed, replaced or cut an unfinished file: the records in it are not what was written any more. */
export class PartGone extends Error {
  constructor(path: string) {
    super(`${path} was removed, replaced or cut by somebody else`);
    this.name = 'PartGone';
  }
}

type Mode = 'closed' | 'open' | 'suspect' | 'sealed';

/**
 * The unfinished file of one partition: a plain log of complete records. `length` bytes of it are durable; what lies
 * beyond was never acknowledged.
 *
 * Modes: `closed` (no handle) ⇄ `open`; `open` → `suspect` when a write or sync failed, so that what lies beyond
 * `length` is unknown and the handle cannot be trusted (the kernel reports a failed sync once, then forgets it);
 * `suspect` → `open` by the next append, on a new handle, after cutting the file back to `length`;
 * any → `sealed`, for good: no more appends, the file waits to be finished.
 *
 * Not safe for concurrent use: its lane runs one call at a time.
 */
export class Part {
  readonly place: PartPlace;
  readonly stats: PartStats;
  /** Set where the finished file exists already under another compression than the configured one. */
  readonly compression: Compression | null;
  /** Seqs of the events in it, but for those of before a restart. */
  readonly seqs = new NumberRuns();
  /** Of those events. */
  destination: string | null = null;
  /** Number of the file on its device, once it was opened. */
  #identity: string | null = null;
  #mode: Mode = 'closed';
  #handle: FileHandle | null = null;
  #length: number;

  constructor(place: PartPlace, stats = new PartStats(), length = 0, compression: Compression | null = null) {
    this.place = place;
    this.stats = stats;
    this.compression = compression;
    this.#length = length;
  }

  get mode(): Mode {
    return this.#mode;
  }

  get length(): number {
    return this.#length;
  }

  /** Absolute path of the unfinished file. */
  get path(): string {
    return this.#pathWith(PART_EXTENSION);
  }

  /** Absolute path of the finished file while it is being written. */
  get temporaryPath(): string {
    return this.#pathWith('.tmp');
  }

  /** Path of the finished file inside the archive, `/`-separated. */
  finishedName(compression: Compression): string {
    const name = `${this.place.stem}${DATA_EXTENSIONS[compression]}`;
    return this.place.folder === '' ? name : `${this.place.folder}/${name}`;
  }

  /** Makes the file, empty and with a durable name. Its folder must exist. */
  async create(): Promise<void> {
    this.#handle = await openPlain(this.path, CREATE_NEW);
    this.#identity = identityOf(await this.#handle.stat({ bigint: true }));
    this.#mode = 'open';
    await syncFolder(dirname(this.path));
  }

  /**
   * Appends the lines of these events; once it resolves they are on disk. When it throws, none of them counts.
   * @param lines whole records, each with its line feed
   * @throws PartGone when what it holds is lost
   */
  async append(lines: Buffer, events: readonly Pick<Event, 'type' | 'receivedAt'>[]): Promise<void> {
    const handle = this.#handle ?? (await this.#reopen());
    try {
      // A file without its name takes bytes as any other, and one that was cut takes them behind a hole. What goes after this
      // look is missed by the next one.
      if (!(await this.isThere())) throw new PartGone(this.path);
      await writeAll(handle, lines, this.#length);
      await handle.datasync();
    } catch (error) {
      await this.#distrust(handle);
      throw error;
    }
    this.#length += lines.length;
    for (const event of events) this.stats.add(event.type, event.receivedAt);
  }

  /** Gives the handle back; the next append opens the file again. */
  async release(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    if (this.#mode === 'open') this.#mode = 'closed';
    await handle?.close();
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

  /** Removes a sealed part that holds nothing. */
  async discard(): Promise<void> {
    await unlink(this.path).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
  }

  async seal(): Promise<void> {
    await this.release();
    this.#mode = 'sealed';
  }

  async #reopen(): Promise<FileHandle> {
    if (this.#mode === 'sealed') throw new Error(`${this.path} is sealed`);
    const handle = await openPlain(this.path, WRITE).catch((error: unknown) => {
      throw isMissing(error) ? new PartGone(this.path) : error;
    });
    try {
      if (!(await this.isThere())) throw new PartGone(this.path);
      this.#identity = identityOf(await handle.stat({ bigint: true }));
      await handle.truncate(this.#length);
    } catch (error) {
      await handle.close();
      throw error;
    }
    this.#handle = handle;
    this.#mode = 'open';
    return handle;
  }

  /** Cuts off what was not made durable, as far as the disk still lets us, and never uses this handle again. */
  async #distrust(handle: FileHandle): Promise<void> {
    this.#mode = 'suspect';
    this.#handle = null;
    await handle.truncate(this.#length).catch(() => undefined);
    await handle.close().catch(() => undefined);
  }

  #pathWith(extension: string): string {
    return join(this.place.openFolder, this.place.folder, `${this.place.stem}${extension}`);
  }
}
