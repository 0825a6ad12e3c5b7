import { CopyObjectCommand } from '@aws-sdk/client-s3';
import { ContainerClient } from '@azure/storage-blob';
import type { IncomingMessage } from 'node:http';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { type ObjectStore, WHAT_TO_DO } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { describeOnStores, type Emulator, storageSettings } from '../support/object-stores/emulators.ts';
import { startFaultProxy } from '../support/object-stores/fault-proxy.ts';
import { motoClient } from '../support/object-stores/moto.ts';
import { bytes, keysOf, textOf } from './contract.ts';

// Azure's stand-in checks signatures, which the conditions are part of; and no other store has its protocol.
describeOnStores(
  ' behind a proxy that drops conditions',
  async (emulator) => {
    const proxy = await startFaultProxy(emulator.url);
    const bucket = await emulator.bucket('heedless');
    const settings = storageSettings(emulator.settings(proxy.url));
    afterAll(() => proxy.stop());

    test.each([
      ['If-None-Match', ['if-none-match'], /ifGenerationMatch=0(&|$)/],
      ['If-Match', ['if-match'], /ifGenerationMatch=(?!0(&|$))[^&]*(&|$)/],
    ] as const)(
      'a store that ignores %s is refused by name, and the same later',
      async (name, headers, query) => {
        const store = await opened(`${bucket}/${name}`, settings);
        proxy.inject(() => null);
        await store.probe();
        proxy.inject((request) => {
          dropHeaders(request, headers);
          request.url = request.url?.replace(query, '');
          return null;
        });
        for (const place of [store, await opened(`${bucket}/${name}-again`, settings)])
          await expect(place.probe()).rejects.toMatchObject({
            fault: 'invalid',
            message: expect.stringContaining(`does not heed ${name},`) as string,
          });
        expect(await keysOf(store, '')).toEqual([]);
        proxy.inject(() => null);
        await expect(store.probe()).resolves.toBeUndefined();
      },
    );
  },
  ['s3', 'gs'],
);

describeOnStores(
  ' with an object in a class that has to be restored',
  async (emulator) => {
    const bucket = await emulator.bucket('archived');

    test('says so, and what to do; a probe works all the same', async () => {
      const store = await opened(`${bucket}/place`, storageSettings(emulator.settings()));
      await store.putIfAbsent('cold', bytes('one'));
      await store.probe();
      for (const key of ['cold', '_probe']) await freeze(emulator, bucket, `place/${key}`);
      await expect(textOf(store, 'cold')).rejects.toMatchObject({
        fault: 'archived',
        message: expect.stringContaining(`${store.url}/cold`) as string,
      });
      expect(await store.putIfAbsent('cold', bytes('one'))).toMatchObject({ status: 'written' });
      expect(await store.putIfAbsent('cold', bytes('two'))).toEqual({ status: 'taken' });
      expect(WHAT_TO_DO.archived).toMatch(/restore.*rehydrate/);
      await store.probe();
    });
  },
  ['s3', 'azblob'],
);

test('what is missing of a config, or is not what it should be, is said as such, and not repeated', async () => {
  for (const name of ['AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_PROFILE']) vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_CONFIG_FILE', '/dev/null');
  onTestFinished(() => void vi.unstubAllEnvs());
  const store = await opened('s3://acme/archive', storageSettings({}));
  await expect(store.probe()).rejects.toMatchObject({
    fault: 'denied',
    message: expect.stringContaining('set storage.s3.region or AWS_REGION') as string,
  });
  for (const connectionString of ['made-up-secret', 'AccountName=acme;AccountKey=made-up-secret'])
    await expect(
      opened('azblob://acme/archive', storageSettings({ azblob: { connectionString } })),
    ).rejects.toMatchObject({
      code: 'usage',
      message: expect.not.stringContaining('made-up-secret') as string,
    });
});

async function opened(place: string, settings: ReturnType<typeof storageSettings>): Promise<ObjectStore> {
  const store = await openStore(place, settings);
  onTestFinished(() => store.close());
  return store;
}

function dropHeaders(request: IncomingMessage, names: readonly string[]): void {
  const raw = request.rawHeaders;
  for (let at = raw.length - 2; at >= 0; at -= 2)
    if (names.includes((raw[at] ?? '').toLowerCase())) raw.splice(at, 2);
}

/** As a lifecycle rule does it. */
async function freeze(emulator: Emulator, bucket: string, key: string): Promise<void> {
  const [scheme, name = ''] = bucket.split('://');
  if (scheme === 's3') {
    const client = motoClient(emulator);
    const into = {
      Bucket: name,
      Key: key,
      StorageClass: 'GLACIER',
      MetadataDirective: 'COPY',
    } as const;
    await client.send(new CopyObjectCommand({ ...into, CopySource: `${name}/${key}` }));
    client.destroy();
    return;
  }
  const { connectionString } = storageSettings(emulator.settings()).azblob;
  await new ContainerClient(connectionString ?? '', name).getBlobClient(key).setAccessTier('Archive');
}
