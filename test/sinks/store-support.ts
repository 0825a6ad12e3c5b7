import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { hash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { chainOf, parseSegmentKey } from '../../src/archive/segments.ts';
import { StorageError, type ObjectStore, type StorageFault } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { parseOptions } from '../../src/sinks/files/config.ts';
import { createSink, FilesSink, type FilesHooks } from '../../src/sinks/files/sink.ts';
import { makeContext, tempFolder, type TestContext } from './support.ts';

export const URL = 's3://made-up/archive';

type Verb = 'putIfAbsent' | 'get' | 'list' | 'probe' | 'delete';

/**
 * A store in a folder whose calls fail by `fault`: before they take effect, or after.
 */
export class FaultyStore implements ObjectStore {
  readonly url = URL;
  readonly #inner: ObjectStore;
  /** Decides on each call. */
  fault: (verb: Verb, key: string) => 'lost' | StorageFault | null = () => null;
  /** Each put waits for it. */
  gate: Promise<void> = Promise.resolve();
  readonly puts: string[] = [];

  constructor(inner: ObjectStore) {
    this.#inner = inner;
  }

  static async in(folder: string): Promise<FaultyStore> {
    return new FaultyStore(await openStore(folder));
  }

  head: ObjectStore['head'] = (key, signal) => this.#inner.head(key, signal);
  putIfMatch: ObjectStore['putIfMatch'] = () => Promise.reject(new Error('nothing is overwritten'));
  purge: ObjectStore['purge'] = (key, signal) => this.#inner.purge(key, signal);
  close: ObjectStore['close'] = () => Promise.resolve();

  probe(): Promise<void> {
    return this.#checked('probe', '', () => this.#inner.probe());
  }

  delete(key: string, version?: string): Promise<'removed' | 'changed'> {
    return this.#checked('delete', key, () => this.#inner.delete(key, version));
  }

  async *list(prefix: string, signal?: AbortSignal): ReturnType<ObjectStore['list']> {
    await this.#checked('list', prefix, () => Promise.resolve());
    yield* this.#inner.list(prefix, signal);
  }

  async *get(key: string, options?: Parameters<ObjectStore['get']>[1]): ReturnType<ObjectStore['get']> {
    await this.#checked('get', key, () => Promise.resolve());
    yield* this.#inner.get(key, options);
  }

  async putIfAbsent(...[key, body, signal]: Parameters<ObjectStore['putIfAbsent']>) {
    await this.gate;
    return this.#checked('putIfAbsent', key, async () => {
      const result = await this.#inner.putIfAbsent(key, body, signal);
      this.puts.push(key);
      return result;
    });
  }

  async #checked<T>(verb: Verb, key: string, run: () => Promise<T>): Promise<T> {
    const fault = this.fault(verb, key);
    if (fault === null) return run();
    if (fault === 'lost') {
      await run();
      throw new StorageError('unreachable', `${key}: the connection was cut`);
    }
    throw new StorageError(fault, `${key}: made to fail`);
  }
}

/** A files sink that writes to a store, with its spool in a folder. */
export function storeSink(
  store: ObjectStore,
  spool: string,
  options: object = {},
  hooks: FilesHooks = {},
): { sink: FilesSink; context: TestContext } {
  const context = { ...makeContext(), openStore: () => Promise.resolve(store) };
  return { sink: new FilesSink(parseOptions({ path: URL, spool, ...options }), context, hooks), context };
}

/** A store in a folder of the test, and sinks with one spool beside it; the first is open. */
export async function storeScene(options: object = {}, hooks: FilesHooks = {}) {
  const path = tempFolder();
  const store = await FaultyStore.in(join(path, 'store'));
  const spool = join(path, 'spool');
  const start = async () => {
    const started = storeSink(store, spool, options, hooks);
    await started.sink.open();
    return started;
  };
  /** Path of the first file in the spool, or in another folder, whose name ends so. */
  const fileIn = (ending: string, folder = spool): string => {
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    return join(folder, names.find((name) => name.endsWith(ending)) ?? '');
  };
  return { path, store, spool, start, fileIn, ...(await start()) };
}

/** Ids of all records of a store, sorted, once its manifest is found to be whole and to name all files. */
export async function idsIn(store: ObjectStore): Promise<string[]> {
  await checkChains(store);
  return (await recordsIn(store)).map(({ id }) => id).toSorted();
}

/** A files sink that writes to a store and keeps no spool. */
export function directSink(store: ObjectStore, options: object = {}) {
  const context = { ...makeContext(), openStore: () => Promise.resolve(store) };
  return createSink(parseOptions({ path: URL, spool: 'none', ...options }), context);
}

export interface Found {
  readonly id: string;
  readonly file: string;
  readonly receivedAt: string;
  readonly body: Buffer;
}

/** All records of a store's objects, read without the product's reader. */
export async function recordsIn(store: ObjectStore): Promise<Found[]> {
  const found: Found[] = [];
  for await (const { key } of store.list('')) {
    if (!key.includes('.ndjson')) continue;
    for (const line of unpacked(key, await bytesOf(store, key))
      .toString()
      .split('\n')
      .slice(0, -1)) {
      const record = JSON.parse(line) as { id: string; received_at: string; body_base64?: string };
      // The body's exact bytes stand at the end of the line.
      const [, verbatim = ''] = /"event":(.*?)(?:,"body_base64":"[^"]*")?\}$/s.exec(line) ?? [];
      const body =
        record.body_base64 === undefined ? Buffer.from(verbatim) : Buffer.from(record.body_base64, 'base64');
      found.push({ id: record.id, file: key, receivedAt: record.received_at, body });
    }
  }
  return found;
}

/**
 * Checks all chains of a store without the product's reader: links, numbers, and that each listed object is as listed, and each
 * object listed once.
 * @returns the files in the manifest
 */
export async function checkChains(store: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list('')) keys.push(key);
  const segments = keys.flatMap((key) => {
    const segment = parseSegmentKey(key);
    return segment === null ? [] : [{ ...segment, key }];
  });
  const listed: string[] = [];
  for (const [, own] of Map.groupBy(segments, ({ writer }) => writer)) {
    const { chain, gaps } = chainOf(own);
    if (gaps.length > 0) throw new Error(`gaps: ${JSON.stringify(gaps)}`);
    let previous = hash('sha256', '', 'hex');
    for (const { key, first, last } of chain) {
      const lines = (await bytesOf(store, key)).toString().split('\n');
      if (lines.pop() !== '' || lines.length !== last - first + 1)
        throw new Error(`${key} has ${lines.length} lines`);
      for (const line of lines) {
        const entry = JSON.parse(line) as { file: string; sha256: string; previous: string };
        if (entry.previous !== previous) throw new Error(`${key}: the chain is broken`);
        previous = hash('sha256', line, 'hex');
        const bytes = await bytesOf(store, entry.file);
        if (hash('sha256', bytes, 'hex') !== entry.sha256) throw new Error(`${entry.file} is not as listed`);
        listed.push(entry.file);
      }
    }
  }
  const files = keys.filter((key) => parseSegmentKey(key) === null);
  if (new Set(listed).size !== listed.length) throw new Error(`listed twice: ${listed.join(', ')}`);
  if (listed.toSorted().join() !== files.toSorted().join())
    throw new Error(`listed ${listed.toSorted().join()}, but there are ${files.toSorted().join()}`);
  return listed;
}

export async function bytesOf(store: ObjectStore, key: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of store.get(key)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function unpacked(key: string, bytes: Buffer): Buffer {
  if (key.endsWith('.gz')) return gunzipSync(bytes);
  return key.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes;
}

/** The destination that a file's folder is named after. */
export function levelOf(file: string): string | null {
  const [level = ''] = file.split('/');
  return level.includes('=') ? null : level;
}

/** The members of a contract subject for a sink that writes to this store. */
export function storeSubject(store: FaultyStore) {
  return {
    destinations: ['meals', 'sleep'],
    arrived: async () => {
      await checkChains(store);
      return (await recordsIn(store))
        .sort((a, b) => (a.receivedAt < b.receivedAt ? -1 : 1))
        .map(({ file, id, body }) => ({ id, destination: levelOf(file), body }));
    },
    outage: {
      begin: () => Promise.resolve(void (store.fault = () => 'unreachable')),
      end: () => Promise.resolve(void (store.fault = () => null)),
    },
  };
}
