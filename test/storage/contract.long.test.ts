import { onTestFinished } from 'vitest';
import { openStore } from '../../src/storage/open.ts';
import { describeOnStores, storageSettings } from '../support/object-stores/emulators.ts';
import { storageContract } from './contract.ts';

describeOnStores('', async (emulator) => {
  const bucket = await emulator.bucket('contract');
  const settings = storageSettings({ ...emulator.settings(), partBytes: '5MiB' });
  let stores = 0;
  storageContract(async () => {
    const store = await openStore(`${bucket}/some prefix/${(stores += 1)}`, settings);
    onTestFinished(() => store.close());
    return store;
  });
});
