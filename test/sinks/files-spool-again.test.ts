import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { checkChains, FaultyStore, recordsIn, storeSink } from './store-support.ts';
import { deliver, signal, tempFolder } from './support.ts';

const KILLED = AbortSignal.abort();

// As an erasure that goes on when the receiver starts does, before the dispatcher has sent anything.
it.each(['flush', 'settle'] as const)(
  'a %s before what a kill has left is sent again: nothing is put twice',
  async (how) => {
    const path = tempFolder();
    const store = await FaultyStore.in(join(path, 'store'));
    const start = () => storeSink(store, join(path, 'spool'));
    const { sink } = start();
    const batch = deliver(1, 3);
    await sink.open();
    await sink.send(batch, signal);
    await sink.close(KILLED);
    const { sink: again, context } = start();
    await again.open();
    if (how === 'flush') await again.flush();
    else await again.settle(() => Promise.resolve(true));
    await again.send(batch.slice(0, 1), signal);
    await again.send([...batch.slice(1), ...deliver(4, 1)], signal);
    // What is accepted from now on was never sent before.
    context.clock.advance(1000);
    await again.send(deliver(5, 1, { receivedAt: context.clock.now() }), signal);
    await again.close(signal);
    await checkChains(store);
    expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual(
      [1, 2, 3, 4, 5].map((n) => `msg_${n}`),
    );
  },
);

it.each([1, 9])(
  'an object whose answer was lost, and which an erasure has written anew meanwhile, is not put again',
  async (level) => {
    const path = tempFolder();
    const store = await FaultyStore.in(join(path, 'store'));
    const { sink } = storeSink(store, join(path, 'spool'));
    const batch = deliver(1, 3);
    await sink.open();
    store.fault = (verb) => (verb === 'putIfAbsent' ? 'lost' : null);
    await sink.send(batch, signal);
    await sink.flush();
    await sink.close(KILLED);
    const under = (folder: string): string => {
      const names = readdirSync(join(path, folder), { recursive: true, encoding: 'utf8' });
      return join(path, folder, names.find((name) => name.endsWith('.gz')) ?? '');
    };
    const [object, made] = [under('store'), under('spool')];
    expect(readFileSync(made)).toEqual(readFileSync(object));
    writeFileSync(object, gzipSync(gunzipSync(readFileSync(object)), { level }));
    expect(readFileSync(made)).not.toEqual(readFileSync(object));
    store.fault = () => null;
    const { sink: again } = storeSink(store, join(path, 'spool'));
    await again.open();
    await again.send(batch, signal);
    await again.close(signal);
    await checkChains(store);
    expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual(
      batch.map(({ event }) => event.id),
    );
  },
);
