import { expect, it, vi } from 'vitest';
import { ManifestChain } from '../../src/archive/manifest-chain.ts';
import { readManifest } from '../../src/archive/manifest.ts';
import { StorePlace } from '../../src/archive/store-place.ts';
import { StorageError } from '../../src/core/storage.ts';
import { tempFolder } from '../sinks/support.ts';
import { MemoryStore } from './memory-store.ts';

const writer = '0123456789ab';
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

const key = (from: number, to = from): string =>
  `_manifest/${writer}/${[from, to].map((n) => String(n).padStart(10, '0')).join('-')}.jsonl`;

async function chainIn(store: MemoryStore, folder: string | null): Promise<ManifestChain> {
  const chain = new ManifestChain({ store, writer, log, folder, signal });
  await chain.open();
  return chain;
}

async function append(chain: ManifestChain, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += 1) await chain.append([line(`dt=2026-11-21/f${at}.ndjson`)]);
}

async function verdict(store: MemoryStore): Promise<unknown> {
  const place = new StorePlace(store.url, () => Promise.resolve(store));
  const { isSound, differences, entries } = await readManifest(await place.list());
  return { isSound, differences, files: entries.size };
}

/** Half of an object comes, then the connection breaks; meanwhile its writer has joined it, and the rest is asked for in vain. */
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
  const chain = await chainIn(store, null);
  await chain.append(Array.from({ length: 5 }, (_, at) => line(`dt=2026-11-21/f${at}.ndjson`)));
  await append(chain, 5, 6);
  const place = new StorePlace(store.url, () => Promise.resolve(store));
  const listed = await place.list();
  store.objects.set(key(1, 6), Buffer.concat([...store.objects.values()]));
  store.breaks = key(1, 5);
  const { isSound, differences, entries } = await readManifest(listed);
  expect([isSound, differences, entries.size]).toEqual([true, [], 6]);
});

it('waits for a joined object that a listing does not show, when a kill has left some of those it joins', async () => {
  const store = new MemoryStore();
  const folder = tempFolder();
  await append(await chainIn(store, folder), 0, 100);
  await vi.waitUntil(() => store.objects.size === 1);
  // Killed amid its removals: the last ones are there.
  const lines = String(store.objects.get(key(1, 100))).split('\n');
  for (let n = 20; n <= 100; n += 1) store.objects.set(key(n), Buffer.from(`${lines[n - 1]}\n`));
  const late = new MemoryStore();
  for (const [name, bytes] of store.objects) if (name !== key(1, 100)) late.objects.set(name, bytes);
  const list = vi.spyOn(store, 'list').mockImplementation((prefix) => late.list(prefix));
  await expect(chainIn(store, folder)).rejects.toMatchObject({ fault: 'unreachable' });
  list.mockRestore();
  await append(await chainIn(store, folder), 100, 130);
  expect(await verdict(store)).toEqual({ isSound: true, differences: [], files: 130 });
});

it('joins no objects over one that is missing for a while', async () => {
  const store = new MemoryStore();
  await append(await chainIn(store, null), 0, 60);
  const lost = store.objects.get(key(30)) ?? Buffer.alloc(0);
  store.objects.delete(key(30));
  await append(await chainIn(store, null), 60, 200);
  await vi.waitUntil(() => store.objects.size < 150);
  store.objects.set(key(30), lost);
  for (const [name, bytes] of store.objects) {
    const [, from, to] = /(\d{10})-(\d{10})/.exec(name) ?? [];
    expect([name, String(bytes).split('\n').length - 1]).toEqual([name, Number(to) - Number(from) + 1]);
  }
  expect(await verdict(store)).toEqual({ isSound: true, differences: [], files: 200 });
});
