import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { Subject } from '../../src/core/erasure.ts';
import { SharedKeys } from '../../src/seal/shared-keys.ts';
import { openStore } from '../../src/storage/open.ts';
import { MadeUpNotes } from './notes.ts';
import { describeOnStores, storageSettings } from '../support/object-stores/emulators.ts';

const NEVER = new AbortController().signal;
const log = { info: () => undefined, warn: () => undefined, error: () => undefined };

describeOnStores(', with the keys of a fleet', async (emulator) => {
  const place = await emulator.bucket('fleet-keys');

  test('two make one key at once, and destroy it at once', async () => {
    const master = randomBytes(32);
    const notes = new MadeUpNotes();
    const open = async (): Promise<SharedKeys> => {
      const store = await openStore(`${place}/keys`, storageSettings(emulator.settings()));
      const keys = await SharedKeys.open({
        store,
        master,
        lease: 1500,
        isNew: async () => true,
        notes: notes.reader(),
        log,
      });
      onTestFinished(() => keys.close());
      return keys;
    };
    const first = await open();
    const all = [first, await open()];
    const owner = { team: 't', user: 'a', clientUser: 'c' };
    const [one, other] = await Promise.all(all.map((keys) => keys.keyOf(owner)));
    const stays = await first.keyOf({ ...owner, user: 'b' });
    expect(one?.id).toBe(other?.id);
    const subject: Subject = { request: 'r', by: 'user', id: 'a', team: null };
    await Promise.all(all.map((keys) => keys.destroy(subject, NEVER, async () => {})));
    await first.settled(NEVER);
    for (const keys of [...all, await open()]) {
      expect(await keys.find(one!.name, one!.id)).toBe('destroyed');
      expect(await keys.find(stays.name, stays.id)).toMatchObject({ id: stays.id });
      expect((await keys.keyOf(owner)).id).not.toBe(one!.id);
    }
  });
});
