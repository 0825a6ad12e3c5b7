import { link, lstat, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { keyProblem } from '../../core/place.ts';
import {
  type GetOptions,
  type ObjectBody,
  type ObjectStore,
  type PutResult,
  StorageError,
  type StoredObject,
} from '../../core/storage.ts';
import {
  ensureFolder,
  errorCode,
  isMissing,
  listNames,
  makeFolder,
  openPlain,
  READ,
  syncFolder,
} from '../../lib/durable.ts';
import { lockInTurn } from '../../lib/file-lock.ts';
import { hashChunks } from '../../lib/hash-chunks.ts';
import { factsOf } from '../body.ts';
import {
  faultOf,
  isTemporaryOf,
  listFolder,
  lockOf,
  objectOf,
  refuseLinks,
  temporaryFor,
  writeTemporary,
} from './files.ts';

/** Milliseconds to wait while another process replaces the same file. */
const LOCK_MS = 30_000;
const CHUNK = 256 * 1024;

/** A local folder; each object is a file. Links are never followed. The first write makes a missing folder. */
export class FolderStore implements ObjectStore {
  readonly url: string;

  /** @param path absolute */
  constructor(path: string) {
    this.url = path;
  }

  readonly head: ObjectStore['head'] = (key) => this.#about(key, () => this.#find(key));

  async *get(key: string, { offset = 0, version, signal }: GetOptions = {}): AsyncGenerator<Buffer> {
    // Not around a yield: an error of the caller is none of the store.
    await using handle = await this.#about(key, async () => openPlain(await this.#safePath(key), READ));
    const { version: there, bytes } = objectOf(key, await handle.stat({ bigint: true }));
    if (version !== undefined && version !== there)
      throw new StorageError('changed', `${this.url}/${key}: was replaced`);
    for (let at = offset; at < bytes;) {
      signal?.throwIfAborted();
      const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK, bytes - at));
      const { bytesRead } = await this.#about(key, () => handle.read(chunk, 0, chunk.length, at));
      if (bytesRead === 0) throw new StorageError('changed', `${this.url}/${key}: was cut while it was read`);
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncGenerator<StoredObject> {
    const objects = listFolder(this.url, prefix);
    for (;;) {
      const { done, value } = await this.#about(prefix, () => objects.next());
      if (done === true) return;
      signal?.throwIfAborted();
      yield value;
    }
  }

  readonly putIfAbsent: ObjectStore['putIfAbsent'] = (key, body, signal) =>
    this.#about(key, async () => {
      const path = await this.#safePath(key);
      makeFolder(this.url, 0o750);
      await ensureFolder(this.url, key.split('/').slice(0, -1).join('/'));
      const there = await this.#compare(key, body);
      if (there !== null) return there;
      const temporary = temporaryFor(path);
      try {
        await writeTemporary(temporary, body, signal);
        // Unlike a rename, it replaces nothing.
        await link(temporary, path);
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw error;
        return (await this.#compare(key, body)) ?? { status: 'taken' };
      } finally {
        await unlink(temporary).catch(() => undefined);
      }
      await syncFolder(dirname(path));
      return { status: 'written', version: await this.#versionOf(key) };
    });

  readonly putIfMatch: ObjectStore['putIfMatch'] = (key, version, body, signal) =>
    this.#about(key, async () => {
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
        const there = await this.#compare(key, body);
        return there?.status === 'written' ? there : { status: 'changed' };
      } finally {
        await unlink(temporary).catch(() => undefined);
      }
    });

  readonly delete: ObjectStore['delete'] = (key, version) =>
    this.#about(key, async () => {
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

  /** Removes temporary files that killed writers have left. */
  readonly purge: ObjectStore['purge'] = (key) =>
    this.#about(key, async () => {
      const path = await this.#safePath(key);
      const names = await listNames(dirname(path));
      const left = names.filter((name) => isTemporaryOf(name, path));
      for (const name of left) await unlink(join(dirname(path), name));
      if (left.length > 0) await syncFolder(dirname(path));
      return { removed: left.length, kept: [] };
    });

  readonly probe: ObjectStore['probe'] = () =>
    this.#about('', async () => {
      makeFolder(this.url, 0o750);
      const temporary = temporaryFor(join(this.url, 'probe'));
      await writeTemporary(temporary, { bytes: Buffer.from('millrace') });
      await unlink(temporary);
    });

  async close(): Promise<void> {}

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

  /** What a put of this body finds: its own bytes, of an earlier attempt, or others; null when nothing is there. */
  async #compare(key: string, body: ObjectBody): Promise<PutResult | null> {
    const found = await this.#find(key);
    if (found === null) return null;
    const { size, sha256 } = factsOf(body);
    const { version } = found;
    if (found.bytes !== size || (await hashChunks(this.get(key, { version }))).sha256 !== sha256)
      return { status: 'taken' };
    // The process that wrote it may have been killed before its name was synced.
    await syncFolder(dirname(join(this.url, key)));
    return { status: 'written', version };
  }

  async #locked<T>(path: string, work: () => Promise<T>): Promise<T> {
    const lock = await lockInTurn(lockOf(path), LOCK_MS);
    try {
      return await work();
    } finally {
      lock.release('remove');
    }
  }

  /** Path of a key without a link in it. @throws NotFollowed, StorageError invalid */
  async #safePath(key: string): Promise<string> {
    const problem = keyProblem(key);
    if (problem !== null) throw new StorageError('invalid', `${JSON.stringify(key)} ${problem}`);
    await refuseLinks(this.url, key);
    return join(this.url, key);
  }

  /** Runs work on a key. @throws StorageError that names it */
  async #about<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const isAbort = error instanceof Error && error.name === 'AbortError';
      if (error instanceof StorageError || isAbort) throw error;
      throw faultOf(error, key === '' ? this.url : `${this.url}/${key}`);
    }
  }
}
