import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Subject } from '../../src/core/erasure.ts';
import { DestroyedKeys } from '../../src/seal/destroyed-keys.ts';
import { KeyPlace } from '../../src/seal/key-place.ts';
import { PlaceWitness } from '../../src/seal/place-witness.ts';
import { SharedKeys } from '../../src/seal/shared-keys.ts';
import { openStore } from '../../src/storage/open.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/until.ts';
import { MadeUpNotes } from './notes.ts';

const NEVER = new AbortController().signal;
const LEASE = 1000;
const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
const owner = (user: string) => ({ team: 'team', user, clientUser: null });
const subject = (id: string): Subject => ({ request: `erasure of ${id}`, by: 'user', id, team: null });

const erase = async (keys: SharedKeys, ...users: string[]): Promise<void> => {
  for (const user of users) await keys.destroy(subject(user), NEVER, async () => {});
};

async function fleet() {
  const root = await temporaryFolder();
  const master = randomBytes(32);
  const notes = new MadeUpNotes();
  const folder = join(root, 'keys');
  const open = async (at = folder, isNew = true): Promise<SharedKeys> => {
    const keys = await SharedKeys.open({
      store: await openStore(at),
      master,
      lease: LEASE,
      isNew: async () => isNew,
      notes: notes.reader(),
      log,
    });
    onTestFinished(() => keys.close());
    return keys;
  };
  const copy = (): string => {
    const to = join(mkdtempSync(join(root, 'copy-')), 'keys');
    cpSync(folder, to, { recursive: true });
    return to;
  };
  /** As somebody does who restores a backup. */
  const restore = (from: string): void => {
    rmSync(folder, { recursive: true });
    renameSync(from, folder);
  };
  const catchUp = async (): Promise<number> => {
    const store = await openStore(folder);
    const place = await KeyPlace.open(store, master, async () => false);
    return new PlaceWitness(place, notes.reader()).catchUp(new DestroyedKeys(store));
  };
  return { root, folder, notes, open, copy, restore, catchUp };
}

const STALE = expect.objectContaining({ code: 'keys_stale' });
const ELSEWHERE = expect.objectContaining({ code: 'keys_elsewhere' });

describe('a place of keys that topics name', () => {
  test('is refused where it is another one of the same master key, by everybody who starts', async () => {
    const { root, folder, open, copy } = await fleet();
    const keys = await open();
    const { name, id } = await keys.keyOf(owner('a'));
    const other = join(root, 'other');
    for (let times = 0; times < 2; times += 1) await expect(open(other)).rejects.toEqual(ELSEWHERE);
    await expect(open(other)).rejects.toThrow(folder);
    await expect(open(other)).rejects.toThrow(other);
    expect(await (await open()).find(name, id)).toMatchObject({ id });
    // It has moved.
    expect(await (await open(copy(), false)).find(name, id)).toMatchObject({ id });
  });

  test('is one, when two start with two at once', async () => {
    const { root, open, notes } = await fleet();
    const all = Promise.withResolvers<void>();
    let writing = 0;
    notes.writing = () => {
      writing += 1;
      if (writing === 6) all.resolve();
      return all.promise;
    };
    const started = await Promise.allSettled(
      ['one', 'two', 'three'].flatMap((name) => [open(join(root, name)), open(join(root, name))]),
    );
    const [won] = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    expect(started.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    for (const each of started) if (each.status === 'rejected') expect(each.reason).toEqual(ELSEWHERE);
    expect(new Set(notes.all.map(({ place }) => place)).size).toBe(3);
    await won?.keyOf(owner('a'));
    // Again, when it is over: the same one.
    for (const name of ['one', 'two', 'three'])
      if (join(root, name) === notes.all[0]?.url) await open(join(root, name), false);
      else await expect(open(join(root, name), false)).rejects.toEqual(ELSEWHERE);
  });

  test('is noted by the next start, when the first was ended before it did', async () => {
    const { open, notes, root } = await fleet();
    const keys = await open();
    await keys.keyOf(owner('a'));
    notes.all.length = 0;
    await open(undefined, false);
    await expect(open(join(root, 'other'))).rejects.toEqual(ELSEWHERE);
  });

  test('is not taken for the right one before that is noted, when records say otherwise', async () => {
    const { open, notes, root } = await fleet();
    const { name, id } = await (await open()).keyOf(owner('a'));
    notes.all.length = 0;
    notes.newest = [[name, id]];
    await expect(open(join(root, 'other'))).rejects.toEqual(STALE);
    expect(notes.all).toEqual([]);
    await open();
  });

  test('is refused as an older copy that has what was destroyed; and used when it has caught up', async () => {
    const { open, copy, restore, catchUp } = await fleet();
    const keys = await open();
    const [gone, stays] = [await keys.keyOf(owner('gone')), await keys.keyOf(owner('stays'))];
    const older = copy();
    await erase(keys, 'gone');
    await open();
    restore(older);
    for (let times = 0; times < 2; times += 1) await expect(open()).rejects.toEqual(STALE);
    await expect(open()).rejects.toThrow('keys catch-up');
    // Whoever runs is told as well, and uses nothing of it.
    await until('it to be told', () => keys.trouble?.code === 'keys_stale');
    await expect(keys.keyOf(owner('new'))).rejects.toEqual(STALE);
    await expect(keys.find(stays.name, stays.id)).rejects.toEqual(STALE);
    await expect(erase(keys, 'stays')).rejects.toEqual(STALE);
    expect(keys.stateOf(stays)).not.toBe('good');
    expect(await Promise.all([catchUp(), catchUp()])).toContain(1);
    expect(await catchUp()).toBe(0);
    const again = await open();
    expect(await again.find(gone.name, gone.id)).toBe('destroyed');
    expect((await again.keyOf(owner('gone'))).id).not.toBe(gone.id);
    expect(await again.find(stays.name, stays.id)).toMatchObject({ id: stays.id });
    await until('who ran to go on', () =>
      keys.find(stays.name, stays.id).then(
        () => true,
        () => false,
      ),
    );
    expect(keys.trouble).toBeNull();
  });

  test('is refused as an older copy where one object of it was restored', async () => {
    const { open, copy, folder } = await fleet();
    const keys = await open();
    const { name, id } = await keys.keyOf(owner('gone'));
    const older = copy();
    await erase(keys, 'gone');
    const all = readdirSync(older, { recursive: true, encoding: 'utf8' });
    const object = all.find((path) => path.endsWith(name)) ?? '';
    cpSync(join(older, object), join(folder, object));
    await expect(open()).rejects.toEqual(STALE);
    await expect(keys.keyOf(owner('gone'))).rejects.toEqual(STALE);
    expect(await keys.find(name, id)).toBe('destroyed');
    await erase(keys, 'gone');
    expect((await (await open()).keyOf(owner('gone'))).id).not.toBe(id);
  });

  test('is refused as an older copy that lacks the key of what came last', async () => {
    const { open, copy, restore, notes } = await fleet();
    const keys = await open();
    const older = copy();
    const { name, id } = await keys.keyOf(owner('new'));
    notes.newest = [[name, id]];
    await open();
    restore(older);
    await expect(open()).rejects.toEqual(STALE);
  });

  test('is told of what was destroyed elsewhere by the notes alone', async () => {
    const { open, copy } = await fleet();
    const keys = await open();
    const use = await keys.keyOf(owner('gone'));
    const apart = await open(copy(), false);
    expect(apart.stateOf(await apart.keyOf(owner('gone')))).toBe('good');
    await erase(keys, 'gone');
    await until('it to hear of it', () => apart.stateOf(use) === 'gone');
    await expect(apart.keyOf(owner('gone'))).rejects.toEqual(STALE);
  });

  test('is not confused by what strangers write there', async () => {
    const { open, notes } = await fleet();
    const keys = await open();
    const { name, id } = await keys.keyOf(owner('a'));
    const [first] = notes.all;
    for (const mac of ['', first?.mac ?? ''])
      notes.all.push({ ...first!, destroyed: [[name, id]], listed: 7, mac });
    notes.all.push({ ...first!, place: 'f'.repeat(16) });
    const other = await open();
    expect(await other.find(name, id)).toMatchObject({ id });
  });
});
