import { expect, test } from 'vitest';
import { compactArchive } from '../../src/archive/compact.ts';
import { Places } from '../../src/archive/places.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { openStore } from '../../src/storage/open.ts';
import { makeErasable } from '../privacy/erase/objects-support.ts';
import { tempFolder } from '../sinks/support.ts';
import { describeOnStores, storageSettings } from '../support/object-stores/emulators.ts';
import { startFaultProxy, type Fault } from '../support/object-stores/fault-proxy.ts';
import { seededRandom } from '../support/random.ts';
import { idsRead } from '../support/archives.ts';
import { ALL_IDS, compactOptions } from './compact-support.ts';
import { keysIn } from './store-archive.ts';

const FAULTS: readonly Fault[] = ['429', '500', '503', 'cut', 'lost', 'half'];

describeOnStores(
  ' compacts over a bad line',
  (emulator) => {
    test('fault 46: every third request goes wrong: each id once at any end, and at last one file of each kind', async () => {
      const url = `${await emulator.bucket('faults')}/archive`;
      const settings = storageSettings(emulator.settings());
      const store = await openStore(url, settings);
      await makeErasable(store, tempFolder(), { compressions: ['gzip', 'none'] });
      const expectSound = async (): Promise<void> => {
        const places = new Places(settings);
        expect((await idsRead(url, { places })).toSorted()).toEqual(ALL_IDS);
        expect((await verifyArchive(url, { places })).differences).toEqual([]);
        await places.close();
      };
      const proxy = await startFaultProxy(emulator.url);
      const bad = storageSettings(emulator.settings(proxy.url));
      const random = seededRandom(1);
      const compactIt = async (): Promise<boolean> => {
        const places = new Places(bad);
        try {
          const options = { ...compactOptions(places), now: Date.now() + 60_000 };
          return (await compactArchive(url, options)).complete;
        } finally {
          await places.close();
        }
      };
      proxy.inject(() => (random() < 1 / 3 ? (FAULTS[Math.floor(random() * FAULTS.length)] ?? null) : null));
      // What gives up is done by the next one.
      for (let tries = 1; tries <= 2; tries += 1) {
        await compactIt().catch(() => false);
        await expectSound();
      }
      proxy.inject(() => null);
      expect(await compactIt()).toBe(true);
      await expectSound();
      expect((await keysIn(store)).filter((key) => key.includes('.ndjson'))).toHaveLength(2);
      expect(proxy.injected.size).toBeGreaterThan(2);
      await proxy.stop();
      await store.close();
    });
  },
  ['azblob'],
);
