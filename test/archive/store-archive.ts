import { generateKeyPairSync, hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { signJson, type Signer } from '../../src/core/signature.ts';
import type { ObjectStore } from '../../src/core/storage.ts';
import { makeArchive, type MadeArchive } from './support.ts';

export const WRITERS = ['00000000000a', '00000000000b'] as const;

type Line = Readonly<Record<string, unknown>> & { readonly file: string };

/** Lines as a chain of one writer, which follow from each other. */
export function chained(lines: readonly Line[], signer?: Signer): string[] {
  let before = hash('sha256', '', 'hex');
  return lines.map((line) => {
    // Its own link is the last of its fields.
    const plain = JSON.stringify({ ...line, previous: before });
    const text = signer === undefined ? plain : signJson('manifest', plain, signer);
    before = hash('sha256', text, 'hex');
    return text;
  });
}

export function newSigner(): Signer {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return { publicKey: publicKey.export({ format: 'jwk' }).x ?? '', key: privateKey };
}

export function segmentName(writer: string, first: number, last: number): string {
  const [from, to] = [first, last].map((number) => String(number).padStart(10, '0'));
  return `_manifest/${writer}/${from}-${to}.jsonl`;
}

export async function put(store: ObjectStore, key: string, text: string | Buffer): Promise<void> {
  const { status } = await store.putIfAbsent(key, { bytes: Buffer.from(text) });
  if (status !== 'written') throw new Error(`${key}: ${status}`);
}

/** Whatever is there, as somebody with the store can. */
export async function overwrite(store: ObjectStore, key: string, text: string | Buffer): Promise<void> {
  await store.delete(key);
  await put(store, key, text);
}

export async function read(store: ObjectStore, key: string): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(store.get(key)));
}

export async function keysIn(store: ObjectStore, prefix = ''): Promise<string[]> {
  return Array.fromAsync(store.list(prefix), ({ key }) => key);
}

/**
 * An archive in a store as two receivers that share it leave it, five records a file: laid out here by the format, from
 * files that a receiver has written to a folder.
 * @returns the files of each writer, in the order of its chain
 */
export async function makeStoreArchive(
  store: ObjectStore,
  { count = 6, options = {} }: { count?: number; options?: object } = {},
): Promise<readonly (readonly string[])[]> {
  return layOut(store, await makeArchive(options, count));
}

/** What a receiver has written to a folder, as two that share a store leave it there. */
export async function layOut(
  store: ObjectStore,
  { path, lines, files }: Pick<MadeArchive, 'path' | 'lines' | 'files'>,
  signer?: Signer,
): Promise<readonly (readonly string[])[]> {
  for (const file of files) await put(store, file, readFileSync(join(path, file)));
  const parsed = lines.map((line) => JSON.parse(line) as Line);
  const owned = WRITERS.map((_, nth) => parsed.filter((__, index) => index % WRITERS.length === nth));
  for (const [nth, own] of owned.entries())
    for (const [index, line] of chained(own, signer).entries())
      await put(store, segmentName(WRITERS[nth] ?? '', index + 1, index + 1), `${line}\n`);
  return owned.map((own) => own.map(({ file }) => file));
}

/** The same store; `before` is waited for in front of each request. */
export function hooked(
  store: ObjectStore,
  before: (verb: keyof ObjectStore, key: string) => Promise<void> | void,
): ObjectStore {
  type Call = (key: string, ...more: readonly unknown[]) => unknown;
  return new Proxy(store, {
    get(_, verb: keyof ObjectStore) {
      const own: unknown = store[verb];
      if (typeof own !== 'function') return own;
      const call = own.bind(store) as Call;
      if (verb === 'get' || verb === 'list')
        return async function* (...given: Parameters<Call>) {
          await before(verb, given[0]);
          yield* call(...given) as AsyncIterable<unknown>;
        };
      return async (...given: Parameters<Call>) => {
        await before(verb, given[0]);
        return call(...given);
      };
    },
  });
}

/** What the writer does from time to time: one object for all its lines, and the small ones deleted after it. */
export async function compact(store: ObjectStore, writer: string, remove = true): Promise<void> {
  const small = await keysIn(store, `_manifest/${writer}/`);
  const texts = await Promise.all(small.map((key) => read(store, key)));
  await put(store, segmentName(writer, 1, small.length), Buffer.concat(texts));
  for (const key of remove ? small : []) await store.delete(key);
}
