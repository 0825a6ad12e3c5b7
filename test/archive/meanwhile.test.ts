import { expect, it, vi } from 'vitest';
import { ManifestChain } from '../../src/archive/manifest-chain.ts';
import { readManifest } from '../../src/archive/manifest.ts';
import { listArchive } from '../../src/archive/places.ts';
import { StorePlace } from '../../src/archive/store-place.ts';
import { tempFolder } from '../sinks/support.ts';
import { compacted, copyOf, makeTemplate, placesOf, URL } from './compact-support.ts';
import { MemoryStore } from './memory-store.ts';

const log = { info: () => {}, warn: () => {}, error: () => {} };
const { signal } = new AbortController();

const line = (file: string) => ({
  file,
  records: 1,
  bytes: 1,
  sha256: 'ab',
  first_received_at: '2026-11-21T00:00:00.000Z',
  last_received_at: '2026-11-21T00:00:00.000Z',
  types: {},
});

it('reads the manifest that was listed, while its writer joins the objects of it, and again', async () => {
  const store = new MemoryStore();
  const chain = new ManifestChain({ store, writer: '0123456789ab', log, folder: null, signal });
  await chain.open();
  const append = async (from: number, to: number): Promise<void> => {
    for (let at = from; at < to; at += 1) await chain.append([line(`dt=2026-11-21/f${at}.ndjson`)]);
  };
  await append(0, 99);
  const place = new StorePlace(store.url, () => Promise.resolve(store));
  const listed = await place.list();
  await append(99, 100);
  await vi.waitUntil(() => store.objects.size === 1);
  const manifest = await readManifest(listed);
  expect([manifest.isSound, manifest.differences, manifest.entries.size]).toEqual([true, [], 99]);
  expect(manifest.chains).toMatchObject([{ lines: 99 }]);
  const large = await place.list();
  await append(100, 199);
  await vi.waitUntil(() => store.objects.size === 1);
  const again = await readManifest(large);
  expect([again.isSound, again.differences, again.entries.size]).toEqual([true, [], 100]);
  store.objects.clear();
  const anew = new StorePlace(store.url, () => Promise.resolve(store));
  await expect(readManifest({ place: anew, manifest: large.manifest })).rejects.toMatchObject({
    fault: 'missing',
  });
});

it('reads what was listed, while compactions join it, and what they have made', async () => {
  const base = tempFolder();
  await makeTemplate(base);
  const root = copyOf(base, tempFolder());
  const places = placesOf(root);
  const { place, files } = await listArchive(URL, places);
  const bytesOf = async (file: string): Promise<string> =>
    Buffer.concat(await Array.fromAsync(place.chunks(file))).toString('hex');
  const before = await Promise.all(files.map(bytesOf));
  expect(files.length).toBeGreaterThan(2);
  expect(await compacted(root, 's3', { targetBytes: 700 })).toMatchObject({ problemsTold: [] });
  expect(await bytesOf(files[0] ?? '')).toBe(before[0]);
  expect(await compacted(root, 's3')).toMatchObject({ made: 1, problemsTold: [] });
  expect(await Promise.all(files.map(bytesOf))).toEqual(before);
  await places.close();
});
