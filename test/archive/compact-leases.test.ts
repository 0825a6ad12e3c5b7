import { hash } from 'node:crypto';
import { readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import { holdFolder, holdStore, type CompactPlace } from '../../src/archive/compact-place.ts';
import { joinFiles } from '../../src/archive/join-files.ts';
import { compactingIn, StoreLease } from '../../src/archive/store-lease.ts';
import type { StoredObject } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { signal, tempFolder } from '../sinks/support.ts';
import { replaceFiles } from '../support/replaced-files.ts';
import { line } from './chain-support.ts';
import { MemoryStore } from './memory-store.ts';
import { keysIn } from './store-archive.ts';

const KEY = '_open/compaction.json';

/** As `holdStore`, but the lease is a variable, and a removal with all versions waits. */
async function placeOn(
  store: MemoryStore,
  isOurs: () => boolean,
  beforeRemoval: () => Promise<void>,
): Promise<CompactPlace> {
  store.objects.delete(KEY);
  const place = await holdStore(store, undefined, signal);
  return {
    ...place,
    remove: async (files, options) => {
      if (options?.andVersions === true) await beforeRemoval();
      return place.remove(files, options);
    },
    check: () =>
      isOurs() ? Promise.resolve() : Promise.reject(new MillraceError('archive_in_use', 'taken over')),
  };
}

it('a compaction that has lost its lease after it has put a file removes nothing of the next one', async () => {
  const store = new MemoryStore();
  const group = ['a', 'b'].map((id) => {
    const bytes = Buffer.from(`{"id":"${id}"}\n`);
    store.objects.set(`dt=2026-11-21/${id}.ndjson`, bytes);
    const sha256 = hash('sha256', bytes, 'hex');
    return { ...line(`dt=2026-11-21/${id}.ndjson`), bytes: bytes.length, sha256, previous: '' };
  });
  let hasLease = true;
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const slow = await placeOn(
    store,
    () => hasLease,
    () => (begun.resolve(), go.promise),
  );
  const next = await placeOn(
    store,
    () => true,
    () => Promise.resolve(),
  );
  const put = (step: string): void => void (step === 'put' && (hasLease = false));
  const one = joinFiles(slow, group, { signal, onStep: put }).catch((error: Error) => error);
  // It has found the file unlisted, and is about to remove it.
  await begun.promise;
  const other = joinFiles(next, group, { signal, onStep: () => {} });
  await other;
  go.resolve();
  await one;
  const all = [...store.objects]
    .filter(([key]) => key.startsWith('dt='))
    .map(([, bytes]) => String(bytes))
    .join('');
  expect(all.includes('"a"') && all.includes('"b"')).toBe(true);
});

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

it.each([11 * MINUTE, 0, -11 * MINUTE])(
  'a running compaction continues where another clock is %i ms ahead',
  async (ahead) => {
    const store = await leased({ ahead, age: MINUTE });
    expect(await compactingIn(store)).toEqual(LIVES);
    await expect(StoreLease.take(store)).rejects.toMatchObject({ code: 'archive_in_use' });
    expect(await keysIn(store)).toEqual([KEY]);
  },
);

it.each([11 * MINUTE, 0, -11 * MINUTE])(
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

it('writes over nothing, and says so also where what it made cannot be removed', async () => {
  const root = tempFolder();
  const place = await holdFolder(root, await openStore(root), undefined);
  onTestFinished(() => place.release());
  writeFileSync(join(root, 'one.ndjson'), 'one\n');
  const put = (): Promise<string> => place.put('one.ndjson', Buffer.from('two\n'), 'one.ndjson');
  await expect(put()).rejects.toMatchObject({ code: 'EEXIST' });
  expect(readdirSync(join(root, '_open')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  // One makes sure that nothing is in the way of the new file.
  let removals = 0;
  replaceFiles(({ rm }) => ({
    rm: (...given) => ((removals += 1) > 1 ? Promise.reject(new Error('EIO: made up')) : rm(...given)),
  }));
  await expect(put()).rejects.toMatchObject({ code: 'EEXIST' });
  expect(removals).toBe(2);
});
