import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../../src/storage/open.ts';
import { verifyArchive } from '../../../src/archive/verify.ts';
import { Places } from '../../../src/archive/places.ts';
import { FaultyStore, recordsIn, storeSink, URL } from '../../sinks/store-support.ts';
import { signal, tempFolder } from '../../sinks/support.ts';
import { batchOf } from '../../support/archives.ts';
import { spoolErasures } from './objects-support.ts';
import { eraseNow, eventOf, find, userId } from './support.ts';

const USERS = [1, 2, 3];
const OTHERS = ['msg_2_0', 'msg_2_1', 'msg_3_0', 'msg_3_1'];
const batch = batchOf(...USERS.flatMap((user) => [0, 1].map((n) => eventOf(user, n, { headers: {} }))));

/** A sink whose object was put, and whose line of the manifest cannot be: the store refuses it. */
async function putAndNotListed(options: object) {
  const path = tempFolder();
  const store = await FaultyStore.in(join(path, 'store'));
  store.fault = (verb, key) => (verb === 'putIfAbsent' && key.startsWith('_manifest') ? 'busy' : null);
  const { sink } = storeSink(store, join(path, 'spool'), options);
  await sink.open();
  await sink.send(batch, signal);
  expect((await sink.flush()).failed).toHaveLength(1);
  expect(store.puts).toHaveLength(1);
  return { path, store, sink };
}

async function expectOnlyOthers(path: string): Promise<void> {
  const store = await FaultyStore.in(join(path, 'store'));
  expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual(OTHERS);
  expect(find([path], [userId(1)])).toEqual([]);
  const places = new Places(null, () => openStore(join(path, 'store')));
  expect((await verifyArchive(URL, { places })).differences).toEqual([]);
}

test.each(['gzip', 'none'])(
  'an erasure while lines of the manifest cannot be put waits for them, and no event is put twice (%s)',
  async (compress) => {
    const { path, store, sink } = await putAndNotListed({ compress });
    const erasures = spoolErasures(path, sink);
    const reason = expect.stringContaining('made to fail') as string;
    expect(await eraseNow(erasures, 1)).toMatchObject({
      receipts: [],
      left: [
        { store: 'spool', item: '', reason },
        { store: URL, item: '' },
      ],
    });
    store.fault = () => null;
    const second = await erasures.run();
    expect([second.left, second.receipts.length]).toEqual([[], 1]);
    await sink.close(signal);
    await expectOnlyOthers(path);
  },
);

test.each(['gzip', 'none'])(
  'a spool of a killed receiver whose object is there and not listed is erased, and continues (%s)',
  async (compress) => {
    const { path: running, sink } = await putAndNotListed({ compress });
    const path = tempFolder();
    cpSync(running, path, { recursive: true });
    await sink.close(AbortSignal.abort());
    const erasures = spoolErasures(path, null);
    expect((await eraseNow(erasures, 1)).left).toEqual([]);
    const again = storeSink(await FaultyStore.in(join(path, 'store')), join(path, 'spool'), { compress });
    await again.sink.open();
    // The journal has not the erased user's any more.
    await again.sink.send(
      batch.filter(({ event }) => event.user !== userId(1)),
      signal,
    );
    await again.sink.close(signal);
    await expectOnlyOthers(path);
  },
);
