import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Places } from '../../../src/archive/places.ts';
import { verifyArchive } from '../../../src/archive/verify.ts';
import type { ErasureReceipt, ErasureResult } from '../../../src/core/erasure.ts';
import type { ObjectStore } from '../../../src/core/storage.ts';
import { openStore } from '../../../src/storage/open.ts';
import { compact, hooked, keysIn, put, read } from '../../archive/store-archive.ts';
import { idsRead } from '../../support/archives.ts';
import { copiesOf } from '../../support/copies.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { runToItsEnd } from '../../support/killed.ts';
import { erasing, makeErasable, NAME, USERS } from './objects-support.ts';
import { eraseNow, eventOf, find, secretOf, userId } from './support.ts';

const CHILD = fileURLToPath(new URL('objects-child.ts', import.meta.url));
const GONE = [1, 3];
/** Records of a user, and the kept event. */
const OF_EACH = 4 + 1;

/** A store with an archive, below a folder that erasures can lie in too. */
const copy = copiesOf(async (root) => {
  const compressions = ['gzip', 'zstd'] as const;
  await makeErasable(await openStore(join(root, 'store')), `${root}-made`, { compressions });
});

async function erase(
  root: string,
  users = GONE,
  more: Parameters<typeof erasing>[2] = {},
  wrap?: Parameters<typeof erasing>[3],
): Promise<ErasureReceipt[]> {
  const erasures = erasing(join(root, 'erasure'), join(root, 'store'), more, wrap);
  const { receipts, left } = await eraseNow(erasures, ...users);
  expect(left).toEqual([]);
  return [...receipts];
}

function placesOf(root: string): Places {
  return new Places(null, () => openStore(join(root, 'store')));
}

/** What a run of erasures leaves: nothing of these users in any byte, the records of the others, a sound archive. */
async function outcome(root: string, gone = GONE): Promise<readonly string[]> {
  expect(
    find([join(root, 'store'), join(root, 'erasure')], [...gone.map(userId), ...gone.map(secretOf)]),
  ).toEqual([]);
  expect((await verifyArchive(NAME, { places: placesOf(root) })).differences).toEqual([]);
  return (await idsRead(NAME, { places: placesOf(root) })).toSorted();
}

const othersOf = (gone: readonly number[]): string[] =>
  USERS.filter((user) => !gone.includes(user)).flatMap((user) => [0, 1, 2, 3].map((n) => `msg_${user}_${n}`));

test('verify, erase, verify, compact, verify: the users are gone from every byte, the rest is as it was', async () => {
  const root = await copy();
  const store = await openStore(join(root, 'store'));
  expect((await verifyArchive(NAME, { places: placesOf(root) })).differences).toEqual([]);
  const receipts = await erase(root);
  expect(receipts.map(({ records_removed: removed }) => removed)).toEqual(GONE.map(() => OF_EACH));
  expect(await outcome(root)).toEqual(othersOf(GONE));
  const own = readFileSync(join(root, 'erasure', 'writer'), 'utf8').trim();
  const writers = new Set((await keysIn(store, '_manifest/')).map((key) => key.split('/')[1] ?? ''));
  expect(writers.size).toBe(3);
  for (const writer of writers) await compact(store, writer);
  expect(await outcome(root)).toEqual(othersOf(GONE));
  // A second erasure continues its chain.
  await erase(root, [2]);
  expect(await outcome(root, [...GONE, 2])).toEqual(othersOf([...GONE, 2]));
  expect((await keysIn(store, `_manifest/${own}/`)).length).toBeGreaterThan(1);
});

test.concurrent.each(['recorded', 'replaced', 'listed', 'purged'])(
  'kill -9 at %s: the next run finishes it, and the receipts say the same',
  async (step) => {
    const root = await copy();
    expect(await runToItsEnd(CHILD, root, step, '3', ...GONE.map(String))).toEqual(['SIGKILL', '']);
    const receipts = await erase(root);
    expect(receipts.map(({ records_removed: removed }) => removed)).toEqual(GONE.map(() => OF_EACH));
    expect(await outcome(root)).toEqual(othersOf(GONE));
  },
);

test('the journal gets every record before it is removed, with the hash of its body', async () => {
  const root = await copy();
  const forgotten: string[] = [];
  await erase(root, [1], {
    forget: async (events) => {
      for (const { source, id, bodyHash } of events) {
        expect(await idsRead(NAME, { places: placesOf(root) })).toContain(id);
        forgotten.push([source, id, Buffer.from(bodyHash, 'latin1').toString('hex')].join(' '));
      }
    },
  });
  const hashed = [0, 1, 2, 3].map((n) => {
    const { source, id, body } = eventOf(1, n);
    return [source, id, createHash('sha256').update(body).digest('hex')].join(' ');
  });
  expect(forgotten.toSorted()).toEqual(hashed);
});

test('two installations erase from one archive at once: what one has replaced, the other reads again', async () => {
  const root = await copy();
  const path = join(root, 'store');
  const other: Promise<ErasureResult>[] = [];
  const receipts = await erase(root, GONE, {}, (store) =>
    hooked(store, async (verb) => {
      // All of it, between the reading and the writing.
      if (verb !== 'putIfMatch') return;
      if (other.length === 0) other.push(eraseNow(erasing(join(root, 'other'), path), 2));
      await other[0];
    }),
  );
  expect(await other[0]).toMatchObject({ left: [] });
  // What it had begun with and could not do is not on the receipt.
  expect(receipts.map(({ records_removed: removed }) => removed)).toEqual(GONE.map(() => OF_EACH));
  expect(await outcome(root, [...GONE, 2])).toEqual(othersOf([...GONE, 2]));
});

test('a receiver was killed between its objects and their lines: what it lists at its next start is known to be erased', async () => {
  const root = await copy();
  const store = await openStore(join(root, 'store'));
  const lines = new Map<string, Buffer>();
  for (const key of await keysIn(store, '_manifest/')) lines.set(key, await read(store, key));
  for (const key of lines.keys()) await store.delete(key);
  await erase(root);
  for (const [key, text] of lines) await put(store, key, text);
  expect(await outcome(root)).toEqual(othersOf(GONE));
});

test('an object that a receiver puts while it runs is searched too, and one that goes away is none', async () => {
  const root = await copy();
  const [file = '', another = ''] = (await keysIn(await openStore(join(root, 'store')), 'dt=')).filter(
    (key) => key.endsWith('.ndjson.gz'),
  );
  let raced = false;
  await erase(root, GONE, {}, (store) =>
    hooked(store, async (verb, key) => {
      if (verb !== 'putIfMatch' || raced) return;
      raced = true;
      await put(store, 'dt=2026-11-21/late.ndjson.gz', await read(store, another === key ? file : another));
    }),
  );
  expect(raced).toBe(true);
  expect(find([join(root, 'store')], [...GONE.map(userId), ...GONE.map(secretOf)])).toEqual([]);
});

function keeping(store: ObjectStore): ObjectStore {
  store.purge = () => Promise.resolve({ removed: 0, kept: ['version 1: locked until 2027-01-01'] });
  return store;
}

test('what the store keeps of earlier versions is named on the receipt', async () => {
  const root = await copy();
  const erasures = erasing(join(root, 'erasure'), join(root, 'store'), {}, keeping);
  const { receipts, left } = await eraseNow(erasures, 1);
  expect(left.length).toBeGreaterThan(0);
  expect(left.every(({ requests }) => requests.length === 0)).toBe(true);
  expect(receipts[0]?.not_searched[0]).toMatch(/\(version 1: locked until 2027-01-01\)$/);
  expect(await outcome(root, [1])).toEqual(othersOf([1]));
});

test('a store that cannot be asked leaves the requests for the next run', async () => {
  const root = await temporaryFolder();
  const erasures = erasing(join(root, 'erasure'), 'ftp://made-up/archive');
  const { receipts, left } = await eraseNow(erasures, 1);
  expect([receipts, left.map(({ store, requests }) => [store, requests.length])]).toEqual([[], [[NAME, 1]]]);
});

// What is there once its whole: a kill between its bytes and its name leaves it under another.
test.each([
  ['a request that was not finished', 'requests/0123456789abcdef.json.tmp'],
  ['what had been changed so far', 'progress.jsonl.tmp'],
  ['an object that was rewritten and not put', 'work/0123456789abcdef.tmp'],
])('kill -9 leaves %s: the erasure of whom it names ends without it', async (_, name) => {
  const root = await temporaryFolder();
  const [folder, path] = [join(root, 'erasure'), join(root, 'store')];
  await (await openStore(path)).putIfAbsent('one.ndjson', { bytes: Buffer.from('{}\n') });
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), `${userId(1)} ${secretOf(1)}\n`);
  const erasures = erasing(folder, path);
  expect(await eraseNow(erasures, 1)).toMatchObject({ left: [], receipts: [{}] });
  expect(find([root], [userId(1), secretOf(1)])).toEqual([]);
});
