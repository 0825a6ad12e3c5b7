import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { KeyStore } from '../../../src/privacy/seal/key-store.ts';
import { openSigner } from '../../../src/privacy/proof/open.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { skipped } from '../../support/requirements.ts';
import { lacksSyncs, watchSyncs } from '../../support/synced.ts';
import { keysOf, MASTER, OTHER, owner, ringOf, subject } from './support.ts';

const CHILD = fileURLToPath(new URL('crash-child.ts', import.meta.url));

async function storeWith(count: number): Promise<{ path: string; store: KeyStore }> {
  const path = join(await temporaryFolder(), 'keys');
  const store = await KeyStore.open(path, MASTER);
  await keysOf(
    store,
    Array.from({ length: count }, (_, n) => owner(n)),
  );
  return { path, store };
}

describe.skipIf(lacksSyncs !== null)(`what a killed process has made${skipped(lacksSyncs)}`, () => {
  it('a store gets a durable name before it is given keys', async () => {
    const { path, store } = await storeWith(1);
    await store.close();
    const synced: string[] = [];
    await watchSyncs((folder) => synced.push(folder));
    const again = await KeyStore.open(path, MASTER);
    await again.close();
    expect(synced).toContain(again.path);
  });

  it('a key that signs gets a durable name before it signs', async () => {
    const folder = realpathSync(await temporaryFolder());
    const { publicKey } = await openSigner(join(folder, 'manifest.key'));
    const synced: string[] = [];
    await watchSyncs((path) => synced.push(path));
    expect((await openSigner(join(folder, 'manifest.key'))).publicKey).toBe(publicKey);
    expect(synced).toContain(folder);
  });
});

describe('key store', () => {
  it('gives every owner a key of its own, the same ever after', async () => {
    const { path, store } = await storeWith(0);
    const owners = [
      owner(1),
      owner(2),
      owner(1),
      owner(1, 'team-2'),
      { team: 'team-1', user: null, clientUser: null },
    ];
    const keys = await keysOf(store, owners);
    expect(new Set(keys.map(({ id }) => id)).size).toBe(4);
    expect(keys[2]?.id).toBe(keys[0]?.id);
    await store.close();
    const again = await KeyStore.open(path, MASTER);
    expect(await keysOf(again, owners)).toEqual(keys);
    expect(again.ring.counts).toEqual({ active: 4, destroyed: 0, damaged: 0 });
    await again.close();
  });

  it('knows a UUID in either case', async () => {
    const { store } = await storeWith(0);
    const uuid = '6b0e9a52-0000-4000-8000-0000000000AA';
    const noTeam = { team: null, clientUser: null };
    const [one, other] = await keysOf(store, [
      { ...noTeam, user: uuid },
      { ...noTeam, user: uuid.toLowerCase() },
    ]);
    expect(one?.id).toBe(other?.id);
    await store.close();
  });

  it('makes one key for an owner whom many ask for at once', async () => {
    const { store } = await storeWith(0);
    const all = await Promise.all(Array.from({ length: 20 }, () => keysOf(store, [owner(1)])));
    expect(new Set(all.map(([key]) => key?.id)).size).toBe(1);
    await store.close();
  });

  it('holds no id and no key in the clear, and is for its owner only', async () => {
    const { path, store } = await storeWith(3);
    const keys = await keysOf(store, [owner(0), owner(1), owner(2)]);
    await store.close();
    const file = join(path, 'keys.bin');
    const bytes = readFileSync(file);
    for (const text of ['user-1', 'client-1', 'team-1']) expect(bytes.includes(text)).toBe(false);
    for (const { key } of keys) expect(bytes.includes(key)).toBe(false);
    expect(statSync(file).mode & 0o077).toBe(0);
  });

  it('says clearly that the master key is another, or the store in use', async () => {
    const { path, store } = await storeWith(1);
    await expect(KeyStore.open(path, MASTER)).rejects.toMatchObject({ code: 'keys_in_use' });
    await store.close();
    for (const open of [() => KeyStore.open(path, OTHER), () => KeyStore.read(path, OTHER)]) {
      await expect(open()).rejects.toMatchObject({ code: 'master_key_wrong' });
    }
    await (await KeyStore.open(path, MASTER)).close();
  });

  it('is no key file: says so, and leaves it as it is', async () => {
    const { path, store } = await storeWith(1);
    await store.close();
    writeFileSync(join(path, 'keys.bin'), 'something else'.repeat(100));
    await expect(KeyStore.open(path, MASTER)).rejects.toMatchObject({
      code: 'keys_unusable',
      detail: expect.stringContaining('keys.bin'),
    });
    expect(readFileSync(join(path, 'keys.bin'), 'utf8')).toContain('something else');
  });

  it('cuts off a slot that a crash left incomplete, and never one that is whole', async () => {
    const { path, store } = await storeWith(2);
    const [, second] = await keysOf(store, [owner(0), owner(1)]);
    await store.close();
    const file = join(path, 'keys.bin');
    const { size } = statSync(file);
    appendFileSync(file, Buffer.alloc(77, 1));
    const again = await KeyStore.open(path, MASTER);
    expect(statSync(file).size).toBe(size);
    expect(await keysOf(again, [owner(1)])).toEqual([second]);
    await again.close();
    const bytes = readFileSync(file);
    bytes[size - 20] = bytes[size - 20]! ^ 1;
    writeFileSync(file, bytes);
    const damaged = await KeyStore.open(path, MASTER);
    expect(damaged.ring.counts).toEqual({ active: 1, destroyed: 0, damaged: 1 });
    await keysOf(damaged, [owner(7)]);
    await damaged.close();
    expect(statSync(file).size).toBeGreaterThan(size);
  });

  it('a kill -9 between the making of keys and anything else leaves keys that open', async () => {
    const path = join(await temporaryFolder(), 'keys');
    const child = spawnSync(process.execPath, [CHILD, 'keys', path, MASTER.toString('hex')]);
    expect([child.signal, child.stderr.toString()]).toEqual(['SIGKILL', '']);
    const made = JSON.parse(child.stdout.toString()) as { id: string; key: string }[];
    const store = await KeyStore.open(path, MASTER);
    const keys = await keysOf(
      store,
      made.map((_, n) => owner(n)),
    );
    expect(keys.map(({ id, key }) => ({ id, key: key.toString('hex') }))).toEqual(made);
    await store.close();
  });
});

describe('destroying keys', () => {
  it('finds what the records would show: user or client user, of a team or of every one', async () => {
    const { store } = await storeWith(0);
    const owners = [
      owner(1),
      owner(1, 'team-2'),
      owner(1, null),
      { ...owner(1), clientUser: 'another' },
      owner(2),
    ];
    await keysOf(store, owners);
    expect(await store.destroy(subject('unknown'))).toBe(0);
    expect(await store.destroy(subject('user-1', 'user', 'team-2'))).toBe(2);
    expect(await store.destroy(subject('another', 'client_user'))).toBe(1);
    expect(await store.destroy(subject('user-1'))).toBe(1);
    expect(store.ring.counts).toMatchObject({ active: 1, destroyed: 4 });
    await store.close();
  });

  it('overwrites the bytes, and the owner gets another key', async () => {
    const { path, store } = await storeWith(3);
    const [before] = await keysOf(store, [owner(1)]);
    const file = join(path, 'keys.bin');
    const was = readFileSync(file);
    const counts: number[] = [];
    await store.destroy(subject('user-1'), async (keys) => {
      expect(readFileSync(file).equals(was)).toBe(true);
      counts.push(keys);
      await Promise.resolve();
    });
    expect(counts).toEqual([1]);
    const now = readFileSync(file);
    expect(now).toHaveLength(was.length);
    const slot = was.subarray(2 * 128, 3 * 128);
    // User, client user and wrapped key, 36 to 116, are gone; the id, 4 to 20, says why records do not open.
    for (let at = 36; at + 8 <= 116; at += 1) expect(now.includes(slot.subarray(at, at + 8))).toBe(false);
    expect(now.includes(slot.subarray(4, 20))).toBe(true);
    const [after] = await keysOf(store, [owner(1)]);
    expect(after?.id).not.toBe(before?.id);
    await store.close();
    expect((await ringOf(path)).counts).toEqual({ active: 3, destroyed: 1, damaged: 0 });
  });
});

describe('rotating the master key', () => {
  it('wraps every key again: the old master key opens nothing, the new one everything, destroyed stays destroyed', async () => {
    const { path, store } = await storeWith(5);
    const owners = [owner(0), owner(1), owner(3)];
    const keys = await keysOf(store, owners);
    await store.destroy(subject('user-4'));
    expect(await store.rotate(OTHER)).toBe(4);
    expect(await keysOf(store, owners)).toEqual(keys);
    await keysOf(store, [owner(9)]);
    await store.close();
    await expect(KeyStore.open(path, MASTER)).rejects.toMatchObject({ code: 'master_key_wrong' });
    const again = await KeyStore.open(path, OTHER);
    expect(await keysOf(again, owners)).toEqual(keys);
    expect(again.ring.counts).toEqual({ active: 5, destroyed: 1, damaged: 0 });
    await again.close();
  });

  it('cut short, it leaves the store with its old master key', async () => {
    const { path, store } = await storeWith(2);
    const keys = await keysOf(store, [owner(0)]);
    await store.close();
    writeFileSync(join(path, 'keys.bin.tmp'), 'half a file');
    const again = await KeyStore.open(path, MASTER);
    expect(await keysOf(again, [owner(0)])).toEqual(keys);
    await again.close();
  });
});

it('thousands of keys are read at once, and opened when they are needed', async () => {
  const { path, store } = await storeWith(0);
  const owners = Array.from({ length: 5_000 }, (_, n) => owner(n));
  const keys = await keysOf(store, owners);
  await store.close();
  const ring = await ringOf(path);
  expect(ring.counts.active).toBe(owners.length);
  expect(ring.keyOf(owner(4_999))).toEqual(keys.at(-1));
});
