import { expect, it, vi } from 'vitest';
import type { ArchiveListing } from '../../src/archive/place.ts';
import { readManifest } from '../../src/archive/manifest.ts';
import { listArchive } from '../../src/archive/places.ts';
import { StoredArchive } from '../../src/archive/stored-archive.ts';
import { StorageError } from '../../src/core/storage.ts';
import { tempFolder } from '../sinks/support.ts';
import { appendEach, key, line, openChain } from './chain-support.ts';
import { compacted, makeTemplate, placesOf, URL } from './compact-support.ts';
import { MemoryStore } from './memory-store.ts';

const placeOn = (store: MemoryStore): StoredArchive => StoredArchive.in(store);

/** What is read of the manifest of a store, or of one that was listed before. */
async function verdict(store: MemoryStore, listed?: ArchiveListing): Promise<unknown> {
  const { isSound, differences, entries } = await readManifest(listed ?? (await placeOn(store).list()));
  return { isSound, differences, files: entries.size };
}

const sound = (files: number) => ({ isSound: true, differences: [], files });

/** The connection breaks inside an object; before the next request its writer has joined it. */
class Breaking extends MemoryStore {
  breaks = '';

  override async *get(name: string): AsyncGenerator<Buffer> {
    const bytes = this.objects.get(name);
    if (name !== this.breaks || bytes === undefined) return yield* super.get(name);
    yield bytes.subarray(0, bytes.length / 2);
    this.objects.delete(name);
    throw new StorageError('missing', name);
  }
}

it('reads an object once of which it had half when its writer joined it to others', async () => {
  const store = new Breaking();
  const chain = await openChain(store);
  await chain.append(Array.from({ length: 5 }, (_, at) => line(`dt=2026-11-21/f${at}.ndjson`)));
  await appendEach(chain, 5, 6);
  const listed = await placeOn(store).list();
  store.objects.set(key(1, 6), Buffer.concat([...store.objects.values()]));
  store.breaks = key(1, 5);
  expect(await verdict(store, listed)).toEqual(sound(6));
});

it('waits for a joined object that a listing does not show, when a kill has left some of those it joins', async () => {
  const store = new MemoryStore();
  const folder = tempFolder();
  await appendEach(await openChain(store, folder), 0, 100);
  await vi.waitUntil(() => store.objects.size === 1);
  // Killed amid its removals: the last ones are there.
  const lines = String(store.objects.get(key(1, 100))).split('\n');
  for (let n = 20; n <= 100; n += 1) store.objects.set(key(n), Buffer.from(`${lines[n - 1]}\n`));
  const late = new MemoryStore();
  for (const [name, bytes] of store.objects) if (name !== key(1, 100)) late.objects.set(name, bytes);
  const list = vi.spyOn(store, 'list').mockImplementation((prefix) => late.list(prefix));
  await expect(openChain(store, folder)).rejects.toMatchObject({ fault: 'unreachable' });
  list.mockRestore();
  await appendEach(await openChain(store, folder), 100, 130);
  expect(await verdict(store)).toEqual(sound(130));
});

it('joins no objects over one that is missing for a while', async () => {
  const store = new MemoryStore();
  await appendEach(await openChain(store), 0, 60);
  const lost = store.objects.get(key(30)) ?? Buffer.alloc(0);
  store.objects.delete(key(30));
  await appendEach(await openChain(store), 60, 200);
  await vi.waitUntil(() => store.objects.size < 150);
  store.objects.set(key(30), lost);
  for (const [name, bytes] of store.objects) {
    const [, from, to] = /(\d{10})-(\d{10})/.exec(name) ?? [];
    expect([name, String(bytes).split('\n').length - 1]).toEqual([name, Number(to) - Number(from) + 1]);
  }
  expect(await verdict(store)).toEqual(sound(200));
});

it('reads the manifest that was listed, while its writer joins the objects of it, and again', async () => {
  const store = new MemoryStore();
  const chain = await openChain(store);
  await appendEach(chain, 0, 99);
  const listed = await placeOn(store).list();
  await appendEach(chain, 99, 100);
  await vi.waitUntil(() => store.objects.size === 1);
  expect(await verdict(store, listed)).toEqual(sound(99));
  const large = await listed.place.list();
  await appendEach(chain, 100, 199);
  await vi.waitUntil(() => store.objects.size === 1);
  expect(await verdict(store, large)).toEqual(sound(100));
  store.objects.clear();
  const gone = readManifest({ place: placeOn(store), manifest: large.manifest });
  await expect(gone).rejects.toMatchObject({ fault: 'missing' });
});

it('reads what was listed, while compactions join it, and what they have made', async () => {
  const root = tempFolder();
  await makeTemplate(root);
  const places = placesOf(root);
  const { place, files } = await listArchive(URL, places);
  const bytesOf = async (file: string): Promise<string> =>
    Buffer.concat(await Array.fromAsync(place.chunks(file))).toString('hex');
  const before = await Promise.all(files.map(bytesOf));
  expect(files.length).toBeGreaterThan(2);
  expect(await compacted(root, 's3', { targetBytes: 700 })).toMatchObject({ reported: [] });
  expect(await bytesOf(files[0] ?? '')).toBe(before[0]);
  expect(await compacted(root, 's3')).toMatchObject({ made: 1, reported: [] });
  expect(await Promise.all(files.map(bytesOf))).toEqual(before);
  await places.close();
});
