import { link, lstat, readdir, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { keyProblem } from '../../core/place.ts';
import {
  type GetOptions,
  type ObjectStore,
  type PutResult,
  StorageError,
  type StoredObject,
} from '../../core/storage.ts';
import {
  ensureFolder,
  errorCode,
  isMissing,
  makeFolder,
  openPlain,
  READ,
  syncFolder,
} from '../../lib/durable.ts';
import { lockInTurn } from '../../lib/file-lock.ts';
import { hashChunks } from '../../lib/hash-chunks.ts';
import { factsOf } from '../body.ts';
import type { Facts } from '../driver.ts';
import {
  faultOf,
  listFolder,
  isRemains,
  lockOf,
  objectOf,
  refuseLinks,
  temporaryFor,
  writeTemporary,
} from './files.ts';

/** Milliseconds to wait while another process replaces the same file. */
const PATIENCE = 30_000;
const CHUNK = 256 * 1024;

/** A local folder, each object a file. Links are never followed. A folder that is missing is made by the first write. */
export class FolderStore implements ObjectStore {
  readonly url: string;

  /** @param path absolute */
  constructor(path: string) {
    this.url = path;
  }

  readonly head: ObjectStore['head'] = (key) => this.#asking(key, () => this.#find(key));

  async *get(key: string, { offset = 0, version, signal }: GetOptions = {}): AsyncGenerator<Buffer> {
    // Not over a yield: what whoever reads throws is none of ours.
    const handle = await this.#asking(key, async () => openPlain(await this.#safePath(key), READ));
    try {
      const stats = await handle.stat({ bigint: true });
      const { version: there, bytes } = objectOf(key, stats);
      if (version !== undefined && version !== there)
        throw new StorageError('changed', `${this.url}/${key}: was replaced`);
      for (let at = offset; at < bytes;) {
        signal?.throwIfAborted();
        const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK, bytes - at));
        const { bytesRead } = await this.#asking(key, () => handle.read(chunk, 0, chunk.length, at));
        if (bytesRead === 0)
          throw new StorageError('changed', `${this.url}/${key}: was cut while it was read`);
        at += bytesRead;
        yield chunk.subarray(0, bytesRead);
      }
    } finally {
      await handle.close();
    }
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncGenerator<StoredObject> {
    try {
      for await (const object of listFolder(this.url, prefix)) {
        signal?.throwIfAborted();
        yield object;
      }
    } catch (error) {
      throw this.#about(prefix, error);
    }
  }

  readonly putIfAbsent: ObjectStore['putIfAbsent'] = (key, body, signal) =>
    this.#asking(key, async () => {
      const path = await this.#made(key);
      const facts = factsOf(body);
      const there = (await this.#find(key)) === null ? null : await this.#own(key, facts);
      if (there !== null) return there;
      const temporary = temporaryFor(path);
      try {
        await writeTemporary(temporary, body, signal);
        await link(temporary, path);
      } catch (error) {
        await unlink(temporary).catch(() => undefined);
        if (errorCode(error) !== 'EEXIST') throw error;
        return (await this.#own(key, facts)) ?? { status: 'taken' };
      }
      await unlink(temporary);
      await syncFolder(dirname(path));
      return { status: 'written', version: await this.#versionOf(key) };
    });

  readonly putIfMatch: ObjectStore['putIfMatch'] = (key, version, body, signal) =>
    this.#asking(key, async () => {
      if ((await this.#find(key)) === null) return { status: 'changed' };
      const path = await this.#safePath(key);
      const temporary = temporaryFor(path);
      try {
        await writeTemporary(temporary, body, signal);
        const isWritten = await this.#locked(path, async () => {
          if ((await this.#find(key))?.version !== version) return false;
          await rename(temporary, path);
          await syncFolder(dirname(path));
          return true;
        });
        if (isWritten) return { status: 'written', version: await this.#versionOf(key) };
        const own = await this.#own(key, factsOf(body));
        return own?.status === 'written' ? own : { status: 'changed' };
      } finally {
        await unlink(temporary).catch(() => undefined);
      }
    });

  readonly delete: ObjectStore['delete'] = (key, version) =>
    this.#asking(key, async () => {
      if ((await this.#find(key)) === null) return 'removed';
      const path = await this.#safePath(key);
      return this.#locked(path, async () => {
        const there = await this.#find(key);
        if (there === null) return 'removed';
        if (version !== undefined && there.version !== version) return 'changed';
        await unlink(path);
        await syncFolder(dirname(path));
        return 'removed';
      });
    });

  /** What writers that were killed have left of it. */
  readonly purge: ObjectStore['purge'] = (key) =>
    this.#asking(key, async () => {
      const path = await this.#safePath(key);
      const names = await readdir(dirname(path)).catch(emptyIfMissing);
      const left = names.filter((name) => isRemains(name, path));
      for (const name of left) await unlink(join(dirname(path), name));
      if (left.length > 0) await syncFolder(dirname(path));
      return { removed: left.length, kept: [] };
    });

  readonly probe: ObjectStore['probe'] = async () => {
    await this.#asking('', async () => {
      makeFolder(this.url, 0o750);
      const temporary = temporaryFor(join(this.url, 'probe'));
      await writeTemporary(temporary, { bytes: Buffer.from('millrace') });
      await unlink(temporary);
    });
  };

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #find(key: string): Promise<StoredObject | null> {
    try {
      const stats = await lstat(await this.#safePath(key), { bigint: true });
      return stats.isFile() ? objectOf(key, stats) : null;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async #versionOf(key: string): Promise<string> {
    const found = await this.#find(key);
    if (found === null) throw new StorageError('changed', 'was removed at once by another program');
    return found.version;
  }

  /** What a put finds there: its own bytes, of an attempt before, or another's; null when nothing is there. */
  async #own(key: string, facts: Facts): Promise<PutResult | null> {
    const found = await this.#find(key);
    if (found === null) return null;
    if (found.bytes !== facts.size) return { status: 'taken' };
    const { sha256 } = await hashChunks(this.get(key, { version: found.version }));
    if (sha256 !== facts.sha256) return { status: 'taken' };
    // Who wrote it may have been killed before its name was on disk.
    await syncFolder(dirname(join(this.url, key)));
    return { status: 'written', version: found.version };
  }

  async #locked<T>(path: string, work: () => Promise<T>): Promise<T> {
    const lock = await lockInTurn(lockOf(path), PATIENCE);
    try {
      return await work();
    } finally {
      lock.release('remove');
    }
  }

  /** Path of a key to write, in a folder that is there. */
  async #made(key: string): Promise<string> {
    const path = await this.#safePath(key);
    makeFolder(this.url, 0o750);
    await ensureFolder(this.url, key.split('/').slice(0, -1).join('/'));
    return path;
  }

  /** Path of a key, on which no level below the store is a link. @throws NotFollowed */
  async #safePath(key: string): Promise<string> {
    const problem = keyProblem(key);
    if (problem !== null) throw new StorageError('invalid', `${JSON.stringify(key)} ${problem}`);
    await refuseLinks(this.url, key);
    return join(this.url, key);
  }

  async #asking<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#about(key, error);
    }
  }

  #about(key: string, error: unknown): unknown {
    if (error instanceof StorageError || isAbort(error)) return error;
    return faultOf(error, key === '' ? this.url : `${this.url}/${key}`);
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

function emptyIfMissing(error: unknown): string[] {
  if (isMissing(error)) return [];
  throw error;
}
