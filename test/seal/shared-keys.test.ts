import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Subject } from '../../src/core/erasure.ts';
import { StorageError, type ObjectStore } from '../../src/core/storage.ts';
import { SharedKeys, type KeyUse } from '../../src/seal/shared-keys.ts';
import { openStore } from '../../src/storage/open.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/until.ts';
import { MadeUpNotes } from './notes.ts';

const LEASE = 800;
const owner = (user: string | null, clientUser: string | null = null) => ({ team: 'team', user, clientUser });
const subject = (id: string, more: Partial<Subject> = {}): Subject => ({
  request: `erasure of ${id}`,
  by: 'user',
  id,
  team: null,
  ...more,
});
const NEVER = new AbortController().signal;
const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
const ignore = async (): Promise<void> => {};

/** A place that processes share. */
async function sharing(): Promise<{
  folder: string;
  open: (
    around?: (store: ObjectStore) => ObjectStore,
    master?: Buffer,
    isNew?: boolean,
    noted?: MadeUpNotes,
  ) => Promise<SharedKeys>;
  notes: MadeUpNotes;
}> {
  const folder = join(await temporaryFolder(), 'keys');
  const own = randomBytes(32);
  const notes = new MadeUpNotes();
  return {
    folder,
    notes,
    open: async (around = (store) => store, master = own, isNew = true, noted = notes) => {
      const keys = await SharedKeys.open({
        store: around(await openStore(folder)),
        master,
        lease: LEASE,
        isNew: async () => isNew,
        notes: noted.reader(),
        log,
      });
      onTestFinished(() => keys.close());
      return keys;
    },
  };
}

const erase = async (keys: SharedKeys, ...subjects: Subject[]): Promise<void> => {
  for (const each of subjects) await keys.destroy(each, NEVER, ignore);
  await keys.settled(NEVER);
};

/** A look that began before is awaited by all, and may fail. */
const isBack = (keys: SharedKeys): Promise<boolean> =>
  until('the place to be back', () =>
    keys.keyOf(owner('probe')).then(
      () => true,
      () => false,
    ),
  );

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /[0-9a-f]{96}$/.test(name));

describe('keys that processes share', () => {
  test('are one for each owner, however many ask at once', async () => {
    const { open, folder } = await sharing();
    const all = await Promise.all([open(), open(), open()]);
    const uses = await Promise.all(
      all.flatMap((keys) => [keys.keyOf(owner('a')), keys.keyOf(owner('a')), keys.keyOf(owner('b'))]),
    );
    expect(new Set(uses.map(({ id }) => id)).size).toBe(2);
    const exported = new Set(uses.map(({ key }) => key.export().toString('hex')));
    expect(exported.size).toBe(2);
    expect(filesOf(folder)).toHaveLength(2);
    // No id is in a name, nor a key in a file.
    for (const name of filesOf(folder))
      for (const key of exported) expect(readFileSync(join(folder, name)).toString('hex')).not.toContain(key);
  });

  test('are let go of at a stop while whoever keeps the notes does not answer', async () => {
    const { open, notes } = await sharing();
    const keys = await open();
    notes.isSilent = true;
    // A look asks for the notes, and does not wait for them.
    await wait(LEASE);
    await keys.keyOf(owner('a'));
    await expect(keys.close()).resolves.toBeUndefined();
  });

  test('are gone for everybody when the erasure is over, and a new one is another', async () => {
    const { open } = await sharing();
    const [one, other] = [await open(), await open()];
    const [gone, stays] = [await one.keyOf(owner('a')), await one.keyOf(owner('b'))];
    expect(await other.find(gone.name, gone.id)).toMatchObject({ id: gone.id });
    await erase(one, subject('A'), subject('a'));
    for (const keys of [one, other]) {
      expect(keys.stateOf(gone)).toBe('gone');
      expect(await keys.find(gone.name, gone.id)).toBe('destroyed');
      expect(await keys.isGone(stays)).toBe(false);
    }
    const fresh = await other.keyOf(owner('a'));
    expect(fresh.id).not.toBe(gone.id);
    expect(await (await open()).find(gone.name, gone.id)).toBe('destroyed');
    // Again: what has come since.
    await erase(other, subject('a'));
    for (const { name, id } of [gone, fresh]) expect(await one.find(name, id)).toBe('destroyed');
    expect(await one.find(stays.name, stays.id)).toMatchObject({ id: stays.id });
  });

  test('are those of the subject, by client user and team too', async () => {
    const { open } = await sharing();
    const keys = await open();
    const uses = {
      mine: await keys.keyOf({ team: 't', user: 'a', clientUser: 'c' }),
      other: await keys.keyOf({ team: 't', user: 'b', clientUser: 'd' }),
      elsewhere: await keys.keyOf({ team: 'u', user: 'e', clientUser: 'c' }),
    };
    const request = subject('c', { by: 'client_user', team: 't' });
    const owned = keys.owned([request]);
    expect(Object.values(uses).map(({ name }) => owned(name).length)).toEqual([1, 0, 0]);
    const counts: number[] = [];
    await keys.destroy(request, NEVER, async (count) => void counts.push(count));
    await keys.destroy(request, NEVER, async (count) => void counts.push(count));
    expect(counts).toEqual([1]);
    expect(Object.values(uses).map((use) => keys.stateOf(use))).toEqual(['gone', 'good', 'good']);
  });

  test('are destroyed by two at once, and once', async () => {
    const { open } = await sharing();
    const all = [await open(), await open()];
    const uses: KeyUse[] = [];
    for (let n = 0; n < 10; n += 1)
      uses.push(await all[n % 2]!.keyOf({ team: `t${n}`, user: 'a', clientUser: null }));
    await Promise.all(all.map((keys) => erase(keys, subject('a'))));
    const third = await open();
    for (const use of uses)
      for (const keys of [...all, third]) expect(await keys.find(use.name, use.id)).toBe('destroyed');
  });

  test.each(['key destroyed', 'keys listed'])(
    'an erasure that is ended at "%s" is completed by the next, whatever came between',
    async (step) => {
      const { open } = await sharing();
      const [one, other] = [await open(), await open()];
      const uses = [await other.keyOf(owner('a', 'c')), await other.keyOf(owner('a', 'd'))];
      const killed = one.destroy(subject('a'), NEVER, ignore, (at) => {
        if (at === step) throw new Error('killed');
      });
      await expect(killed).rejects.toThrow('killed');
      // One that does not know of the erasure makes another key in its place.
      const third = await open();
      const between = await third.keyOf(owner('a', 'c'));
      await erase(await open(), subject('a'));
      for (const keys of [one, other, third])
        for (const use of [...uses, between]) expect(await keys.isGone(use)).toBe(true);
    },
  );

  test('are not used by who has not looked for a lease, be it cut off or paused', async () => {
    const { open } = await sharing();
    let isCut = false;
    const zombie = await open(
      (store) =>
        ({
          ...Object.fromEntries(
            (['get', 'list', 'putIfAbsent', 'putIfMatch', 'delete', 'purge', 'probe', 'close'] as const).map(
              (name) => [name, (store[name] as (...args: unknown[]) => unknown).bind(store)],
            ),
          ),
          url: store.url,
          head: (key: string) =>
            isCut ? Promise.reject(new StorageError('unreachable', 'cut off')) : store.head(key),
        }) as ObjectStore,
      undefined,
      true,
      // Those neither.
      new MadeUpNotes(),
    );
    const use = await zombie.keyOf(owner('a'));
    isCut = true;
    await erase(await open(), subject('a'));
    await until('its lease to be over', () => zombie.stateOf(use) === 'unsure');
    await expect(zombie.keyOf(owner('a'))).rejects.toThrow('cut off');
    await expect(zombie.find(use.name, use.id)).rejects.toThrow('cut off');
    await expect(zombie.isGone(use)).rejects.toThrow('cut off');
    isCut = false;
    expect(await zombie.isGone(use)).toBe(true);
    // As when the process stands still.
    const other = await zombie.keyOf(owner('b'));
    const end = performance.now() + LEASE;
    while (performance.now() < end);
    expect(zombie.stateOf(other)).toBe('unsure');
    expect(await zombie.isGone(other)).toBe(false);
    expect(zombie.stateOf(await zombie.keyOf(owner('b')))).toBe('good');
  });

  test.each(['empty', 'another', 'not there'])(
    'a place that is %s for a while is not used, and nothing is lost',
    async (what) => {
      const { open, folder } = await sharing();
      const keys = await open();
      const known = await keys.keyOf(owner('known'));
      renameSync(folder, `${folder}.away`);
      if (what !== 'not there') mkdirSync(folder);
      if (what === 'another') await open(undefined, undefined, true, new MadeUpNotes());
      // At once: a key of it would be lost.
      for (let times = 0; times < 2; times += 1)
        await expect(keys.keyOf(owner('new'))).rejects.toMatchObject({ fault: 'unreachable' });
      await expect(keys.find(known.name, 'f'.repeat(32))).rejects.toMatchObject({ fault: 'unreachable' });
      await expect(keys.destroy(subject('known'), NEVER, ignore)).rejects.toMatchObject({
        fault: 'unreachable',
      });
      // Within a lease, what is in memory as well.
      await until('its lease to be over', () => keys.stateOf(known) === 'unsure');
      await expect(keys.keyOf(owner('known'))).rejects.toMatchObject({ fault: 'unreachable' });
      if (what === 'empty') {
        await expect(open(undefined, undefined, false)).rejects.toMatchObject({ code: 'keys_unusable' });
        expect(readdirSync(folder)).toEqual([]);
      }
      if (what !== 'not there') {
        expect(filesOf(folder)).toEqual([]);
        renameSync(folder, `${folder}.under`);
      }
      renameSync(`${folder}.away`, folder);
      await isBack(keys);
      expect((await keys.keyOf(owner('known'))).id).toBe(known.id);
      expect((await keys.keyOf(owner('new'))).id).toBe((await (await open()).keyOf(owner('new'))).id);
      await erase(keys, subject('known'));
      expect(await (await open()).find(known.name, known.id)).toBe('destroyed');
    },
  );

  test('a place that goes away while a key is written gives nobody this key, then or later', async () => {
    const { open, folder } = await sharing();
    let isAway = false;
    const keys = await open(
      (store) =>
        new Proxy(store, {
          get: (all, name) => {
            const own: unknown = Reflect.get(all, name);
            if (typeof own !== 'function') return own;
            return (...args: unknown[]): unknown => {
              if (name === 'putIfAbsent' && isAway) {
                renameSync(folder, `${folder}.away`);
                mkdirSync(folder);
                isAway = false;
              }
              return own.apply(all, args) as unknown;
            };
          },
        }),
    );
    isAway = true;
    await expect(keys.keyOf(owner('a'))).rejects.toMatchObject({ fault: 'unreachable' });
    expect(filesOf(folder)).toHaveLength(1);
    await expect(keys.keyOf(owner('a'))).rejects.toMatchObject({ fault: 'unreachable' });
    renameSync(folder, `${folder}.under`);
    renameSync(`${folder}.away`, folder);
    await isBack(keys);
    const { name, id } = await keys.keyOf(owner('a'));
    expect(await (await open()).find(name, id)).toMatchObject({ id });
  });

  test('more than the list has is noticed', async () => {
    const { open, folder } = await sharing();
    const keys = await open();
    const use = await keys.keyOf(owner('a'));
    const list = join(folder, 'destroyed');
    writeFileSync(list, JSON.stringify({ count: 5, last: ['f'.repeat(32)] }));
    await until('its look', () => keys.stateOf(use) === 'unsure');
    expect(await keys.isGone(use)).toBe(false);
    writeFileSync(list, 'x');
    await wait(LEASE);
    await expect(keys.keyOf(owner('a'))).rejects.toThrow('destroyed is damaged');
  });

  test('say what is wrong with a place', async () => {
    const { open, folder } = await sharing();
    const keys = await open();
    const use = await keys.keyOf(owner('a'));
    await expect(open(undefined, randomBytes(32))).rejects.toMatchObject({ code: 'master_key_wrong' });
    const [name = ''] = filesOf(folder);
    const path = join(folder, name);
    const sound = readFileSync(path);
    const missing = 'f'.repeat(32);
    await expect(keys.find(use.name, missing)).rejects.toMatchObject({ code: 'keys_unusable' });
    const other = await open();
    for (const at of [0, 70, 127]) {
      const bytes = Buffer.from(sound);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(path, bytes);
      await expect(other.find(use.name, use.id)).rejects.toMatchObject({ code: 'keys_unusable' });
    }
    // A mark that nobody with the master key made.
    writeFileSync(path, Buffer.concat([Buffer.of(2), sound.subarray(1)]));
    await expect(other.find(use.name, use.id)).rejects.toMatchObject({ code: 'keys_unusable' });
    writeFileSync(path, sound);
    expect(await other.find(use.name, use.id)).toMatchObject({ id: use.id });
  });
});
