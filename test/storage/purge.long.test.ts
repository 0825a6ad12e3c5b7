import {
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListObjectVersionsCommand,
  PutBucketVersioningCommand,
} from '@aws-sdk/client-s3';
import { ContainerClient } from '@azure/storage-blob';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { ObjectStore } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnStores, type Emulator, storageSettings } from '../support/object-stores/emulators.ts';
import { startFaultProxy } from '../support/object-stores/fault-proxy.ts';
import { motoClient } from '../support/object-stores/moto.ts';
import { bytes, keysOf, textOf, versionOf } from './contract.ts';

/** What only the vendor's own interface can do and tell. */
interface Vendor {
  /** Lets a bucket keep what is replaced or removed, as far as the stand-in can. */
  keep(emulator: Emulator, bucket: string, key: string): Promise<void>;
  /** How many states of a key there are, the present one included. */
  count(emulator: Emulator, bucket: string, key: string): Promise<number>;
}

const VENDORS: Readonly<Record<string, Vendor>> = {
  s3: {
    keep: async (emulator, Bucket, Key) => {
      const client = motoClient(emulator);
      await client.send(
        new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: 'Enabled' } }),
      );
      await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
    },
    count: async (emulator, Bucket, Prefix) => {
      const found = await motoClient(emulator).send(new ListObjectVersionsCommand({ Bucket, Prefix }));
      const { Uploads = [] } = await motoClient(emulator).send(
        new ListMultipartUploadsCommand({ Bucket, Prefix }),
      );
      return (found.Versions ?? []).length + (found.DeleteMarkers ?? []).length + Uploads.length;
    },
  },
  azblob: {
    // The emulator has no versions, but snapshots.
    keep: () => Promise.resolve(),
    count: async (emulator, bucket, prefix) => {
      const blobs = container(emulator, bucket).listBlobsFlat({ prefix, includeSnapshots: true });
      return (await Array.fromAsync(blobs)).length;
    },
  },
  gs: {
    keep: async ({ url }, bucket) => {
      const body = JSON.stringify({ versioning: { enabled: true } });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${url}/storage/v1/b/${bucket}`, { method: 'PATCH', headers, body });
      expect(answer.status).toBe(200);
    },
    count: async ({ url }, bucket, prefix) => {
      const answer = await fetch(`${url}/storage/v1/b/${bucket}/o?versions=true&prefix=${prefix}`);
      return ((await answer.json()) as { items?: unknown[] }).items?.length ?? 0;
    },
  },
};

describeOnStores(' that keeps what was replaced', async (emulator, scheme) => {
  const { keep, count } = VENDORS[scheme]!;
  const place = await emulator.bucket('kept');
  const bucket = place.replace(/^.*\/\//, '');
  const open = async (): Promise<ObjectStore> => {
    const store = await openStore(place, storageSettings(emulator.settings()));
    onTestFinished(() => store.close());
    return store;
  };

  test('a purge removes it all, of this key only, and leaves the present state', async () => {
    const store = await open();
    await keep(emulator, bucket, 'user');
    const replace = async (key: string): Promise<void> => {
      const first = versionOf(await store.putIfAbsent(key, bytes('Ada')));
      if (scheme === 'azblob') await container(emulator, bucket).getBlobClient(key).createSnapshot();
      await store.putIfMatch(key, first, bytes('no name'));
    };
    await replace('user');
    await replace('user-2');
    const other = await count(emulator, bucket, 'user-2');
    expect(await count(emulator, bucket, 'user')).toBeGreaterThan(other + 1);
    expect(await store.purge('user')).toMatchObject({ kept: [] });
    expect(await count(emulator, bucket, 'user')).toBe(other + 1);
    expect(await textOf(store, 'user')).toBe('no name');
    expect(await store.delete('user')).toBe('removed');
    expect(await store.purge('user')).toMatchObject({ kept: [] });
    expect(await count(emulator, bucket, 'user')).toBe(other);
    expect(await keysOf(store, '')).toEqual(['user-2']);
  });

  test('what stays though somebody answers that it was removed is named', async () => {
    const proxy = await startFaultProxy(emulator.url);
    onTestFinished(() => proxy.stop());
    const store = await openStore(place, storageSettings({ ...emulator.settings(proxy.url), tries: 1 }));
    onTestFinished(() => store.close());
    await keep(emulator, bucket, 'stays');
    const first = versionOf(await store.putIfAbsent('stays', bytes('Ada')));
    if (scheme === 'azblob') await container(emulator, bucket).getBlobClient('stays').createSnapshot();
    await store.putIfMatch('stays', first, bytes('no name'));
    proxy.inject(({ method }) => (method === 'DELETE' ? 'page' : null));
    expect((await store.purge('stays')).kept).not.toEqual([]);
    await expect(store.delete('stays')).rejects.toMatchObject({ fault: 'unreachable' });
    proxy.inject(() => null);
    expect((await store.purge('stays')).kept).toEqual([]);
  });
});

test('in a folder, a purge removes what killed writers have left', async () => {
  const folder = await temporaryFolder();
  const store = await openStore(folder);
  await store.putIfAbsent('a/user', bytes('no name'));
  await store.putIfAbsent('a/user.0123456789ab', bytes('another'));
  await writeFile(join(folder, 'a', 'user.0123456789ab.tmp'), 'Ada');
  expect(await keysOf(store, '')).toEqual(['a/user', 'a/user.0123456789ab']);
  expect(await store.purge('a/user')).toEqual({ removed: 1, kept: [] });
  expect(await readdir(join(folder, 'a'))).toEqual(['user', 'user.0123456789ab']);
});

function container({ settings }: Emulator, name: string): ContainerClient {
  const { connectionString } = (settings() as { azblob: { connectionString: string } }).azblob;
  return new ContainerClient(connectionString, name);
}
