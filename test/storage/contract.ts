import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type ObjectBody, type ObjectStore, StorageError } from '../../src/core/storage.ts';
import { temporaryFolder } from '../support/folders.ts';

const MIB = 1024 * 1024;

/** What every store must do. @param open a store in a place of its own, empty */
export function storageContract(open: () => Promise<ObjectStore>): void {
  test('an object is there whole once it is written, and not before', async () => {
    const store = await open();
    expect(await store.head('a/b.txt')).toBeNull();
    await expect(textOf(store, 'a/b.txt')).rejects.toMatchObject({ fault: 'missing' });
    const put = await store.putIfAbsent('a/b.txt', bytes('one'));
    const found = await store.head('a/b.txt');
    expect(found).toMatchObject({ key: 'a/b.txt', bytes: 3, version: versionOf(put) });
    expect(Math.abs((found?.modifiedAt ?? 0) - Date.now())).toBeLessThan(3_600_000);
    expect(await textOf(store, 'a/b.txt')).toBe('one');
  });

  test('what is there is never overwritten; the same bytes are written, others are refused', async () => {
    const store = await open();
    const first = await store.putIfAbsent('key', bytes('one'));
    expect(await store.putIfAbsent('key', bytes('two'))).toEqual({ status: 'taken' });
    expect(await store.putIfAbsent('key', bytes('longer'))).toEqual({ status: 'taken' });
    expect(await store.putIfAbsent('key', bytes('one'))).toEqual(first);
    expect(await textOf(store, 'key')).toBe('one');
  });

  test('an object is replaced only in the version that was seen', async () => {
    const store = await open();
    const first = versionOf(await store.putIfAbsent('key', bytes('one')));
    const second = versionOf(await store.putIfMatch('key', first, bytes('two')));
    expect(second).not.toBe(first);
    expect(await store.putIfMatch('key', first, bytes('three'))).toEqual({ status: 'changed' });
    expect(await textOf(store, 'key')).toBe('two');
    expect(await store.putIfMatch('key', first, bytes('two'))).toEqual({
      status: 'written',
      version: second,
    });
    expect(await store.putIfMatch('none', second, bytes('x'))).toEqual({ status: 'changed' });
    expect(await store.head('none')).toBeNull();
  });

  test('of many who write one key at once, one does', async () => {
    const store = await open();
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, index) => store.putIfAbsent('key', bytes(`writer ${index}`))),
    );
    const winner = results.findIndex(({ status }) => status === 'written');
    expect(results.filter(({ status }) => status === 'written')).toHaveLength(1);
    expect(await textOf(store, 'key')).toBe(`writer ${winner}`);
    const version = versionOf(results[winner]!);
    const again = await Promise.all(
      Array.from({ length: 8 }, (_, index) => store.putIfMatch('key', version, bytes(`again ${index}`))),
    );
    expect(again.filter(({ status }) => status === 'written')).toHaveLength(1);
    expect(await textOf(store, 'key')).toBe(`again ${again.findIndex(({ status }) => status === 'written')}`);
  });

  test('reads from any offset, and only the version asked for', async () => {
    const store = await open();
    const version = versionOf(await store.putIfAbsent('key', bytes('0123456789')));
    expect(await textOf(store, 'key', { offset: 4 })).toBe('456789');
    expect(await textOf(store, 'key', { offset: 10 })).toBe('');
    expect(await textOf(store, 'key', { offset: 11 })).toBe('');
    expect(await textOf(store, 'key', { offset: 9, version })).toBe('9');
    await store.putIfMatch('key', version, bytes('abc'));
    await expect(textOf(store, 'key', { version })).rejects.toMatchObject({ fault: 'changed' });
    await store.putIfAbsent('empty', bytes(''));
    expect(await textOf(store, 'empty')).toBe('');
  });

  test('lists by prefix, in order of the keys’ bytes, page after page', async () => {
    const store = await open();
    const keys = ['a-b', 'a/b', 'a/c/d', 'a0', 'ab', 'b é ü+&%41', 'b/z', 'ä'];
    await Promise.all(keys.map((key) => store.putIfAbsent(key, bytes(key))));
    expect(await keysOf(store, '')).toEqual(keys);
    expect(await keysOf(store, 'a')).toEqual(['a-b', 'a/b', 'a/c/d', 'a0', 'ab']);
    expect(await keysOf(store, 'a/')).toEqual(['a/b', 'a/c/d']);
    expect(await keysOf(store, 'b é')).toEqual(['b é ü+&%41']);
    expect(await keysOf(store, 'c')).toEqual([]);
    for (const key of keys) expect(await textOf(store, key)).toBe(key);
    const [listed] = await Array.fromAsync(store.list('a-b'));
    expect(listed).toMatchObject({ ...(await store.head('a-b')), modifiedAt: expect.any(Number) as number });
  });

  test('removes, in any version or in one', async () => {
    const store = await open();
    const version = versionOf(await store.putIfAbsent('key', bytes('one')));
    const second = versionOf(await store.putIfMatch('key', version, bytes('two')));
    expect(await store.delete('key', version)).toBe('changed');
    expect(await textOf(store, 'key')).toBe('two');
    expect(await store.delete('key', second)).toBe('removed');
    expect(await store.delete('key', second)).toBe('removed');
    expect(await store.delete('key')).toBe('removed');
    expect(await store.head('key')).toBeNull();
    expect(await keysOf(store, '')).toEqual([]);
    expect(await store.purge('key')).toEqual({ removed: expect.any(Number) as number, kept: [] });
  });

  test('a large file is written in parts and read back', async () => {
    const store = await open();
    const content = noise(12 * MIB + 5);
    const body = await fileOf(content);
    const version = versionOf(await store.putIfAbsent('large', body));
    expect(await store.head('large')).toMatchObject({ bytes: content.length, version });
    expect(await hashOf(store, 'large')).toBe(body.sha256);
    expect(await store.putIfAbsent('large', body)).toEqual({ status: 'written', version });
    const other = await fileOf(noise(12 * MIB + 5, 1));
    expect(await store.putIfAbsent('large', other)).toEqual({ status: 'taken' });
    expect(await hashOf(store, 'large')).toBe(body.sha256);
    expect((await store.putIfMatch('large', version, other)).status).toBe('written');
    expect(await store.putIfMatch('large', version, body)).toEqual({ status: 'changed' });
    expect(await hashOf(store, 'large')).toBe(other.sha256);
    expect(await textOf(store, 'large', { offset: 12 * MIB + 1 })).toHaveLength(4);
  });

  test('a file that is not what was said of it is not written', async () => {
    const store = await open();
    const { file, size, sha256 } = await fileOf(Buffer.from('content'));
    await expect(store.putIfAbsent('key', { file, size: size + 1, sha256 })).rejects.toMatchObject({
      fault: 'invalid',
    });
    expect(await store.head('key')).toBeNull();
  });

  test('keys that lead elsewhere, or nowhere, are refused', async () => {
    const store = await open();
    for (const key of ['', '/a', 'a/', 'a//b', '../a', 'a/./b', 'a\0b', 'a\\b', 'x'.repeat(1100)]) {
      await expect(store.putIfAbsent(key, bytes('x')), key).rejects.toMatchObject({ fault: 'invalid' });
      await expect(store.head(key), key).rejects.toBeInstanceOf(StorageError);
    }
  });

  test('a probe finds nothing wrong, once, twice and at once, and leaves nothing that a listing shows', async () => {
    const store = await open();
    await store.probe();
    await Promise.all([store.probe(), store.probe()]);
    expect(await keysOf(store, '')).toEqual([]);
  });

  test('what is aborted ends with the reason', async () => {
    const store = await open();
    await store.putIfAbsent('key', bytes('one'));
    const signal = AbortSignal.abort();
    await expect(Array.fromAsync(store.get('key', { signal }))).rejects.toMatchObject({ name: 'AbortError' });
    await expect(Array.fromAsync(store.list('', signal))).rejects.toMatchObject({ name: 'AbortError' });
  });
}

export function bytes(text: string): ObjectBody {
  return { bytes: Buffer.from(text) };
}

/** The version that was written. @throws when none was */
export function versionOf(result: { status: string; version?: string }): string {
  if (result.status !== 'written' || result.version === undefined) throw new Error(result.status);
  return result.version;
}

export async function textOf(
  store: ObjectStore,
  key: string,
  options?: Parameters<ObjectStore['get']>[1],
): Promise<string> {
  return Buffer.concat(await Array.fromAsync(store.get(key, options))).toString();
}

export async function keysOf(store: ObjectStore, prefix: string): Promise<string[]> {
  return (await Array.fromAsync(store.list(prefix))).map(({ key }) => key);
}

async function hashOf(store: ObjectStore, key: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of store.get(key)) hash.update(chunk);
  return hash.digest('hex');
}

/** Bytes that compress badly and are cheap to make. */
export function noise(length: number, seed = 0): Buffer {
  const content = Buffer.alloc(length);
  for (let at = 0, value = seed; at + 4 <= length; at += 4)
    content.writeUInt32LE((value = (Math.imul(value, 1_664_525) + 1_013_904_223) >>> 0), at);
  return content;
}

export async function fileOf(content: Buffer): Promise<{ file: string; size: number; sha256: string }> {
  const file = join(await temporaryFolder(), 'body');
  await writeFile(file, content);
  return { file, size: content.length, sha256: createHash('sha256').update(content).digest('hex') };
}
