import { onTestFinished } from 'vitest';
import { openStore } from '../../src/storage/open.ts';
import { storageSettings, type Emulator } from '../support/object-stores/emulators.ts';
import type { FaultProxy } from '../support/object-stores/fault-proxy.ts';

let places = 0;

/** A place of the running test's own in a bucket, behind a proxy that the test makes fail; one try a request. */
export async function placeIn(emulator: Emulator, bucket: string, proxy: FaultProxy) {
  const url = `${bucket}/${(places += 1)}`;
  const storage = storageSettings({ ...emulator.settings(proxy.url), tries: 1, timeout: '60s' });
  const store = await openStore(url, storage);
  onTestFinished(() => {
    proxy.inject(() => null);
    return store.close();
  });
  return { url, storage, store };
}
