import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compactingIn, StoreLease } from '../../src/archive/store-lease.ts';
import type { ObjectStore, StoredObject } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { tempFolder } from '../sinks/support.ts';

const KEY = '_open/compaction.json';
const MINUTE = 60_000;
const LIVES = { by: 'process 1 on elsewhere', ended: false };

/** A store with the lease of another machine, whose clock is that of the store: ours is ahead of it. */
async function leased({ ahead, age }: { readonly ahead: number; readonly age: number }) {
  const path = tempFolder();
  const store = await openStore(path);
  await store.putIfAbsent(KEY, { bytes: Buffer.from(JSON.stringify({ host: 'elsewhere', process: 1 })) });
  const at = (Date.now() - age) / 1000;
  utimesSync(join(path, KEY), at, at);
  const head = store.head.bind(store);
  store.head = async (key, ...more): Promise<StoredObject | null> => {
    const found = await head(key, ...more);
    return found === null ? null : { ...found, modifiedAt: found.modifiedAt - ahead };
  };
  return store;
}

const keysIn = async (store: ObjectStore): Promise<string[]> =>
  (await Array.fromAsync(store.list(''))).map(({ key }) => key);

test.each([11 * MINUTE, 0, -11 * MINUTE])(
  'a compaction that lives goes on where another clock is %i ms ahead',
  async (ahead) => {
    const store = await leased({ ahead, age: MINUTE });
    expect(await compactingIn(store)).toEqual(LIVES);
    await expect(StoreLease.take(store)).rejects.toMatchObject({ code: 'archive_in_use' });
    expect(await keysIn(store)).toEqual([KEY]);
  },
);

test.each([11 * MINUTE, 0, -11 * MINUTE])(
  'one without a sign of life is ended where another clock is %i ms ahead',
  async (ahead) => {
    const store = await leased({ ahead, age: 11 * MINUTE });
    const lease = await StoreLease.take(store);
    await lease.check();
    await lease.release();
    expect(await keysIn(store)).toEqual([]);
    expect(await compactingIn(await leased({ ahead, age: 11 * MINUTE }))).toMatchObject({ ended: true });
  },
);
