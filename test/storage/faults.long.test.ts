import { afterAll, expect, onTestFinished, test } from 'vitest';
import type { ObjectStore } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { describeOnStores, storageSettings } from '../support/object-stores/emulators.ts';
import {
  type Fault,
  FAULTS,
  type FaultProxy,
  startFaultProxy,
} from '../support/object-stores/fault-proxy.ts';
import { seededRandom } from '../support/random.ts';
import { runCount, SEED } from '../support/run-count.ts';
import { bytes, fileOf, keysOf, noise, textOf, versionOf } from './contract.ts';
import { patiently, writeAlone, writeTogether } from './history.ts';

const WANTED = runCount({ long: 500 });
/** Short, because it is waited for often; on a busy machine some requests need more than one attempt then. */
const TIMEOUT = '200ms';

describeOnStores(' behind a bad line', async (emulator, scheme) => {
  const proxy = await startFaultProxy(emulator.url);
  afterAll(() => proxy.stop());
  const bucket = await emulator.bucket('faults');
  let stores = 0;
  const open = async ({ tries = 20, timeout = TIMEOUT } = {}): Promise<ObjectStore> => {
    const written = { ...emulator.settings(proxy.url), timeout, tries, partBytes: '5MiB' };
    const store = await openStore(`${bucket}/${(stores += 1)}`, storageSettings(written));
    onTestFinished(async () => {
      proxy.inject(() => null);
      await store.close();
    });
    return store;
  };

  test.each(FAULTS)('one %s goes unnoticed, whatever it hits', async (fault) => {
    const store = await open();
    const once = (): void => inject(proxy, [fault]);
    once();
    const version = versionOf(await store.putIfAbsent('key', bytes('one')));
    once();
    expect(await store.putIfAbsent('key', bytes('two'))).toEqual({ status: 'taken' });
    once();
    const second = versionOf(await store.putIfMatch('key', version, bytes('two')));
    once();
    expect(await textOf(store, 'key')).toBe('two');
    once();
    expect(await keysOf(store, '')).toEqual(['key']);
    once();
    expect(await store.delete('key', version)).toBe('changed');
    once();
    expect(await store.delete('key', second)).toBe('removed');
    expect(await keysOf(store, '')).toEqual([]);
  });

  test('a store that never answers is reported, and so is one that is not there', async () => {
    const store = await open({ tries: 2 });
    proxy.inject(() => '503');
    await expect(store.head('key')).rejects.toMatchObject({ fault: 'busy' });
    proxy.inject(() => 'cut');
    await expect(store.putIfAbsent('key', bytes('x'))).rejects.toMatchObject({ fault: 'unreachable' });
    proxy.inject(() => null);
    const gone = await openStore(`${bucket}-gone/prefix`, storageSettings(emulator.settings(proxy.url)));
    onTestFinished(() => gone.close());
    for (const ask of [
      () => gone.head('key'),
      () => gone.putIfAbsent('key', bytes('x')),
      () => textOf(gone, 'key'),
      () => keysOf(gone, ''),
      () => gone.delete('key'),
      () => gone.probe(),
    ])
      await expect(ask()).rejects.toMatchObject({
        fault: 'no_place',
        message: expect.stringContaining(gone.url) as string,
      });
  });

  test('a large object survives faults at any of its parts, and is read as it was written', async () => {
    const store = await open({ timeout: '30s' });
    const random = seededRandom(SEED);
    const content = noise(11 * 1024 * 1024);
    const body = await fileOf(content);
    proxy.inject(() => (random() < 0.2 ? pick(LOUD, random) : null));
    const { status } = await patiently(() => store.putIfAbsent('large', body));
    expect(status).toBe('written');
    const read = await patiently(async () => Buffer.concat(await Array.fromAsync(store.get('large'))));
    expect(read.equals(content)).toBe(true);
  });

  // Takes seconds: each time-out of an attempt has to be waited for.
  test(`${WANTED} random faults lose nothing and overwrite nothing`, async () => {
    const store = await open({ tries: 5 });
    const random = seededRandom(SEED);
    const before = total(proxy);
    proxy.inject(() => (random() < 0.3 ? pick(random() < 0.1 ? SILENT : LOUD, random) : null));
    const isOver = (): boolean => total(proxy) - before >= WANTED;
    await Promise.all([
      ...['a', 'b', 'c', 'd', 'e', 'f'].map((lane, index) =>
        writeAlone(store, `${lane}/`, seededRandom(SEED * 100 + index), isOver),
      ),
      writeTogether(store, isOver),
    ]);
    expect(total(proxy)).toBeGreaterThanOrEqual(WANTED);
    const { requests, injected } = proxy;
    console.info(JSON.stringify({ scheme, requests, ...Object.fromEntries(injected) }));
  });
});

/** Faults that cost no waiting, and those that do. */
const LOUD: readonly Fault[] = ['429', '500', '503', 'cut', 'lost', 'half'];
const SILENT: readonly Fault[] = ['hang', 'mute'];

function pick<T>(from: readonly T[], random: () => number): T {
  return from[Math.floor(random() * from.length)]!;
}

function total(proxy: FaultProxy): number {
  return [...proxy.injected.values()].reduce((sum, count) => sum + count, 0);
}

/** The faults hit the next requests, one each. */
function inject(proxy: FaultProxy, faults: Fault[]): void {
  proxy.inject(() => faults.shift() ?? null);
}
