import { createHash } from 'node:crypto';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/storage/open.ts';
import { temporaryFolder } from '../support/folders.ts';
import { bytes, keysOf, textOf, versionOf } from './contract.ts';

test('links are not followed: not as a key, not on the way, not at the end of a file to write', async () => {
  const folder = await temporaryFolder();
  const outside = join(folder, 'outside');
  await mkdir(outside);
  await writeFile(join(outside, 'secret'), 'secret');
  const root = join(folder, 'store');
  await mkdir(root);
  await symlink(outside, join(root, 'way'));
  await symlink(join(outside, 'secret'), join(root, 'link'));
  const store = await openStore(root);
  expect(await keysOf(store, '')).toEqual([]);
  for (const key of ['way/secret', 'link']) {
    await expect(textOf(store, key), key).rejects.toMatchObject({ fault: 'invalid' });
    await expect(store.head(key), key).rejects.toMatchObject({ fault: 'invalid' });
    await expect(store.putIfAbsent(key, bytes('x')), key).rejects.toMatchObject({ fault: 'invalid' });
    await expect(store.delete(key), key).rejects.toMatchObject({ fault: 'invalid' });
  }
  const sha256 = createHash('sha256').update('secret').digest('hex');
  const body = { file: join(root, 'link'), size: 6, sha256 };
  await expect(store.putIfAbsent('key', body)).rejects.toThrow(/symbolic link/);
  expect(await keysOf(store, '')).toEqual([]);
});

test('no version comes back, however fast a file is replaced', async () => {
  const store = await openStore(await temporaryFolder());
  const seen = new Set<string>();
  for (let step = 0; step < 30; step += 1) {
    seen.add(versionOf(await store.putIfAbsent('key', bytes('same'))));
    await store.delete('key');
  }
  expect(seen.size).toBe(30);
});
