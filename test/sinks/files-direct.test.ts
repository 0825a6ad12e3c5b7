import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Places } from '../../src/archive/places.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { parseOptions } from '../../src/sinks/files/config.ts';
import { createSink } from '../../src/sinks/files/sink.ts';
import { openStore } from '../../src/storage/open.ts';
import { erasing, NAME } from '../privacy/erase/objects-support.ts';
import { eventOf, find, secretOf, userId } from '../privacy/erase/support.ts';
import { checkChains, directSink, FaultyStore, idsIn, recordsIn, URL } from './store-support.ts';
import { deliver, idsFrom, makeContext, signal, tempFolder } from './support.ts';

const DELIVERED = { status: 'delivered' };

/** A store in a folder, and an open sink for it. */
async function scene(options: object = {}, path = tempFolder()) {
  const store = await FaultyStore.in(path);
  const sink = directSink(store, options);
  await sink.open(signal);
  return { store, sink };
}

it.each(['lost', 'unreachable', 'busy', 'denied', 'no_place'] as const)(
  'fault 46: any put answered %s: sent again in other batches, each event is there once',
  async (fault) => {
    const { store, sink } = await scene({ partitionBy: ['type'] });
    let calls = 0;
    store.fault = (verb) => (verb === 'putIfAbsent' && (calls += 1) % 3 !== 0 ? fault : null);
    let due = [...deliver(1, 20, { type: 'a' }), ...deliver(21, 20, { type: 'b' })];
    for (let round = 1; due.length > 0 && round < 300; round += 1) {
      // The dispatcher may put other batches together.
      const batch = due.slice(0, 3 + ((round * 7) % 11));
      const results = await sink.send(batch, signal);
      for (const result of results)
        if (result.status !== 'delivered') expect(result).toMatchObject({ sink: true });
      due = due.filter((delivery) => results[batch.indexOf(delivery)]?.status !== 'delivered');
    }
    expect(due).toEqual([]);
    store.fault = () => null;
    await sink.close(signal);
    expect(await idsIn(store)).toEqual(idsFrom(1, 40).toSorted());
  },
);

it('says what is wrong while the store is away, and not when it is back', async () => {
  const { store, sink } = await scene();
  store.fault = () => 'busy';
  await sink.send(deliver(1, 1), signal);
  expect(sink.troubles?.()).toMatchObject([{ code: 'store_busy' }]);
  store.fault = () => null;
  expect(await sink.send(deliver(1, 1), signal)).toEqual([DELIVERED]);
  expect(sink.troubles?.()).toEqual([]);
  await sink.close(signal);
  expect(await recordsIn(store)).toHaveLength(1);
});

it('replicas share a place, each with a chain of its own', async () => {
  const store = await FaultyStore.in(tempFolder());
  const sinks = Array.from({ length: 4 }, () => directSink(store));
  await Promise.all(sinks.map((sink) => sink.open(signal)));
  for (let from = 1; from <= 50; from += 10)
    await Promise.all(sinks.map((sink, at) => sink.send(deliver(at * 1000 + from, 10), signal)));
  await Promise.all(sinks.map((sink) => sink.close(signal)));
  expect(new Set(await idsIn(store)).size).toBe(200);
});

it('finishes what had failed before an erasure looks, so that nothing comes after it', async () => {
  const { store, sink } = await scene();
  store.fault = (verb, key) => (verb === 'putIfAbsent' && key.startsWith('_manifest') ? 'busy' : null);
  await sink.send(deliver(1, 1), signal);
  const settle = async (): Promise<void> => sink.settle?.(() => Promise.resolve(true));
  await expect(settle()).rejects.toThrow('made to fail');
  store.fault = () => null;
  await settle();
  await checkChains(store);
  await sink.close(signal);
});

it.each([
  ['rewritten', [1, 2, 3, 1]],
  ['removed', [1, 1, 1, 1]],
] as const)(
  'a put without an answer, and another machine’s erasure has %s the object since: the sink continues, and no erased record comes back',
  async (_, users) => {
    const folder = tempFolder();
    const path = join(folder, 'store');
    const { store, sink } = await scene({}, path);
    const batch = users.map((user, n) => ({ event: eventOf(user, n, { headers: {} }), destination: null }));
    await sink.send([{ event: eventOf(4, 9), destination: null }], signal);
    store.fault = (verb) => (verb === 'putIfAbsent' ? 'lost' : null);
    expect(await sink.send(batch, signal)).toMatchObject(batch.map(() => ({ status: 'retry' })));
    store.fault = () => null;
    const erasures = erasing(join(folder, 'erasure'), path);
    await erasures.request({ by: 'user', id: userId(1), team: null }, true);
    expect(await erasures.run()).toMatchObject({ left: [], receipts: [{ stores: [NAME] }] });
    expect(await sink.send(batch, signal)).toEqual(batch.map(() => DELIVERED));
    expect(sink.troubles?.()).toEqual([]);
    await sink.close(signal);
    expect(find([path], [userId(1), secretOf(1)])).toEqual([]);
    const left = users.flatMap((user, n) => (user === 1 ? [] : [`msg_${user}_${n}`]));
    expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual([...left, 'msg_4_9'].toSorted());
    const places = new Places(null, () => openStore(path));
    expect((await verifyArchive(NAME, { places })).differences).toEqual([]);
    await places.close();
  },
);

it('is used where nothing is kept, whatever the config says of a spool', async () => {
  const store = await FaultyStore.in(tempFolder());
  const context = { ...makeContext(), openStore: () => Promise.resolve(store) };
  const sink = createSink(parseOptions({ path: URL }, { tables: [], spool: '/nowhere' }), context);
  await sink.open(signal);
  expect(await sink.send(deliver(1, 1), signal)).toEqual([DELIVERED]);
  await sink.close(signal);
});
