import type { IncomingMessage } from 'node:http';
import { afterAll, expect, test } from 'vitest';
import type { ErasureResult } from '../../../src/core/erasure.ts';
import type { ObjectStore } from '../../../src/core/storage.ts';
import { openStore } from '../../../src/storage/open.ts';
import { keysIn, read } from '../../archive/store-archive.ts';
import { tempFolder } from '../../sinks/support.ts';
import { describeOnStores, type Emulator, storageSettings } from '../../support/object-stores/emulators.ts';
import { startFaultProxy } from '../../support/object-stores/fault-proxy.ts';
import { erasing, makeErasable } from './objects-support.ts';
import { secretOf, userId } from './support.ts';

const GONE = 1;
const IS_LIST = /[?&](list-type=2|versions|uploads|comp=list)|\/o\?/;

/** What of the store names the user. */
async function tracesIn(store: ObjectStore): Promise<string[]> {
  const found: string[] = [];
  for (const key of await keysIn(store)) {
    const content = (await read(store, key)).toString('latin1');
    if ([userId(GONE), secretOf(GONE)].some((word) => content.includes(word))) found.push(key);
  }
  return found;
}

/** Whether a request is the first of its kind for its address. */
function firstOf(): (request: IncomingMessage) => boolean {
  const asked = new Set<string>();
  return ({ method = '', url = '' }) => {
    const before = asked.size;
    return asked.add(`${method} ${url}`).size > before;
  };
}

/** A store with an archive, a proxy in front of it, and an erasure that asks that one. */
async function prepare(emulator: Emulator) {
  const proxy = await startFaultProxy(emulator.url);
  const bucket = await emulator.bucket('no-answers');
  afterAll(() => proxy.stop());
  const erased = async (name: string) => {
    const url = `${bucket}/${name}`;
    const store = await openStore(url, storageSettings(emulator.settings()));
    await makeErasable(store, tempFolder(), { compressions: ['none'] });
    const proxied = storageSettings({ ...emulator.settings(proxy.url), tries: 3 });
    const erasures = erasing(tempFolder(), () => openStore(url, proxied));
    await erasures.request({ by: 'user', id: userId(GONE), team: null }, true);
    return { store, run: (): Promise<ErasureResult> => erasures.run() };
  };
  return { proxy, erased };
}

describeOnStores(' behind somebody who answers in its place', async (emulator) => {
  const { proxy, erased } = await prepare(emulator);

  // What is taken for an empty object, or for one that was removed, stays as it is, and the receipt would say that it is gone.
  test('each request is answered with a page once, or with nothing, and nothing of the user stays', async () => {
    const { store, run } = await erased('pages');
    const isFirst = firstOf();
    let pages = 0;
    proxy.inject((request) => {
      if (!isFirst(request)) return null;
      pages += 1;
      return pages % 2 === 0 ? 'page' : 'nothing';
    });
    const { left, receipts } = await run();
    expect(left).toEqual([]);
    expect(receipts).toHaveLength(1);
    expect(await tracesIn(store)).toEqual([]);
    await store.close();
  });
});

// What all stores have in common.
describeOnStores(
  ' behind somebody who knows nothing of it',
  async (emulator) => {
    const { proxy, erased } = await prepare(emulator);

    test('each object is said to be missing once, by each kind of request, and nothing of the user stays', async () => {
      const { store, run } = await erased('missing');
      const isFirst = firstOf();
      proxy.inject((request) => {
        const { method = '', url = '' } = request;
        if (IS_LIST.test(url) || !/^(GET|HEAD|DELETE)$/.test(method)) return null;
        return isFirst(request) ? '404' : null;
      });
      for (let runs = 1; (await run()).left.length > 0; runs += 1) expect(runs).toBeLessThan(4);
      expect(await tracesIn(store)).toEqual([]);
      await store.close();
    });

    test('where no list is answered with one, no receipt is written', async () => {
      const { store, run } = await erased('lists');
      proxy.inject(({ url = '' }) => (IS_LIST.test(url) ? 'page' : null));
      const { left, receipts } = await run();
      expect(receipts).toEqual([]);
      expect(left).not.toEqual([]);
      proxy.inject(() => null);
      expect((await run()).receipts).toHaveLength(1);
      expect(await tracesIn(store)).toEqual([]);
      await store.close();
    });
  },
  ['azblob'],
);
