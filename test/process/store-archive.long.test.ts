import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { openStore } from '../../src/storage/open.ts';
import { keysIn, read } from '../archive/store-archive.ts';
import { eventOf, find, userId } from '../privacy/erase/support.ts';
import { checkChains, recordsIn } from '../sinks/store-support.ts';
import { describeOnStores, storageSettings } from '../support/object-stores/emulators.ts';
import { Place } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';
import { inEnvironment, scene } from './store-scene.ts';

const userOf = (body: Buffer): string => (JSON.parse(body.toString()) as { user_id: string }).user_id;
const MASTER = `mrk_${Buffer.alloc(32, 5).toString('base64')}`;

// What differs between stores is held by the port's own tests.
describeOnStores(
  ' as an archive',
  (emulator) => {
    test('what is held is put before its sink is renamed, and before it leaves', async () => {
      const { place, url, store } = await scene(emulator, 'reload', { rotate: { every: '1h' } });
      const receiver = await place.start();
      const reload = async (sinks: object): Promise<void> => {
        place.edit((config) => (config.sinks = sinks));
        expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
      };
      const held = async () => (await receiver.status()).sinks.reduce((sum, sink) => sum + sink.held, 0);
      await receiver.send(3);
      await until('three to be held', async () => (await held()) === 3);
      expect(await recordsIn(store)).toEqual([]);
      await reload({ lake: { type: 'files', path: url, rotate: { every: '1h' }, continues: 'archive' } });
      await until('them to be put', async () => (await recordsIn(store)).length === 3);
      await receiver.send(3, 3);
      await until('three more to be held', async () => (await held()) === 3);
      await reload({ out: { type: 'files', path: place.at('folder') } });
      await until('them to be put', async () => (await recordsIn(store)).length === 6);
      await until('the sink to have left', async () => {
        const { cursors } = (await receiver.status()).journal;
        return cursors.map(({ sink }) => sink).join() === 'out';
      });
      await receiver.stop();
      await checkChains(store);
    });

    test('sealed, killed, verified, played back, erased from: what is there is sealed, and of an erased user nothing opens', async () => {
      const env = { MILLRACE_MASTER_KEY: MASTER };
      const { place, url, store } = await scene(emulator, 'sealed', {}, {}, env);
      place.edit((config) => {
        const encrypt = { store: place.at('keys'), masterKey: '${MILLRACE_MASTER_KEY}' };
        const out = (name: string) => ({ type: 'files', path: place.at(name) });
        config.sinks = {
          archive: { type: 'files', path: url, encrypt },
          before: out('before'),
          after: out('after'),
        };
        config.routes = [{ match: '*', to: ['archive'] }];
      });
      let receiver: Serving = await place.startProcess();
      const type = 'daily.data.meal.created';
      const all = Array.from({ length: 10 }, (_, n) => madeUpEvent(n, type));
      await receiver.send(all.slice(0, 6));
      await receiver.kill('SIGKILL');
      receiver = await place.start();
      await receiver.send(all.slice(6));
      expect(await place.ok('flush', 'archive')).toContain(`${url}/`);
      const gone = userOf(all[0]!.body);
      const idsWithout = (user: string): string[] =>
        all.flatMap(({ id, body }) => (userOf(body) === user ? [] : [id])).toSorted();
      const replayed = async (name: string): Promise<string[]> => {
        await place.ok('archive', 'verify', url);
        await place.ok('replay', url, '--to', name);
        return [...(await place.archived(name)).keys()].toSorted();
      };
      expect(await replayed('before')).toEqual(idsWithout(''));
      await place.ok('erase', gone, '--now');
      await receiver.stop();
      expect(await replayed('after')).toEqual(idsWithout(gone));
      for (const key of (await keysIn(store)).filter((name) => name.endsWith('.gz')))
        expect(gunzipSync(await read(store, key)).toString()).not.toContain('meal');
    });

    test('what a kill left in a spool whose folder no config names any more is searched by an erasure, and finished in its own store by a start', async () => {
      const url = `${await emulator.bucket('unfinished')}/archive`;
      const { storage, env } = inEnvironment(emulator.settings());
      const place = await Place.make({}, env);
      const configure = (sink: object): void =>
        place.write({ storage, sinks: { archive: { type: 'files', ...sink } } });
      configure({ path: url, spool: place.at('spools') });
      const first = await place.startProcess();
      await first.send([eventOf(1, 0), eventOf(2, 0)]);
      const parts = (): string[] =>
        readdirSync(place.at('spools'), { recursive: true, encoding: 'utf8' })
          .filter((name) => name.endsWith('.part'))
          .map((name) => readFileSync(place.at('spools', name), 'utf8'));
      await until('both in the spool', () => parts().join('').split('\n').length === 3);
      await first.kill('SIGKILL');
      configure({ path: place.at('here') });
      expect(await place.json('erase', userId(1), '--now')).toMatchObject({ code: 0, left: [] });
      expect(find([place.at('spools')], [userId(1)])).toEqual([]);
      const second = await place.startProcess();
      await until('no unfinished file', () => parts().length === 0);
      await second.stop();
      const store = await openStore(url, storageSettings(emulator.settings()));
      const files = (await keysIn(store)).filter((key) => key.endsWith('.gz'));
      const texts = await Promise.all(
        files.map(async (key) => gunzipSync(await read(store, key)).toString()),
      );
      await store.close();
      expect(texts.join('')).toContain(userId(2));
      expect(texts.join('')).not.toContain(userId(1));
      await place.ok('archive', 'verify', url);
    });
  },
  ['azblob'],
);
