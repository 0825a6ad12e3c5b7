import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { checkChains, recordsIn } from '../sinks/store-support.ts';
import { millraceProcess, writeConfig } from '../support/millrace.ts';
import { describeOnStores } from '../support/object-stores/emulators.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { expectVerified, scene } from './store-scene.ts';

/** What differs between stores is held by the port's own tests. */
const ONE = ['azblob'] as const;

describeOnStores(
  ' as an archive',
  (emulator) => {
    test('without a spool: acknowledged when it is in the store, and all verifies', async () => {
      const { place, config, store, env } = await scene(emulator, 'direct', { spool: 'none' });
      const receiver = await Receiver.start(config, { env });
      const ids: string[] = [];
      for (let n = 0; n < 5; n += 1) {
        const { id, body } = madeUpEvent(n);
        await postSigned(receiver.url, body, { id });
        ids.push(id);
      }
      await until('all to be in the store', async () => (await recordsIn(store)).length === 5);
      expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
      expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
      await checkChains(store);
      await expectVerified(place, emulator);
    });

    test('what is held is put before its sink is renamed, and before it leaves', async () => {
      const { place, config, store, storage, env } = await scene(emulator, 'reload', {
        rotate: { every: '1h' },
      });
      const receiver = await Receiver.start(config, { env });
      const post = async (n: number): Promise<void> => {
        const { id, body } = madeUpEvent(n);
        await postSigned(receiver.url, body, { id });
      };
      const reload = async (sinks: object): Promise<void> => {
        writeConfig(dirname(config), { storage, sinks });
        const before = receiver.logLines().filter(({ msg }) => msg === 'reloaded').length;
        receiver.signal('SIGHUP');
        await until(
          'the reload',
          () => receiver.logLines().filter(({ msg }) => msg === 'reloaded').length > before,
        );
      };
      const held = async () => (await receiver.status()).sinks.reduce((sum, sink) => sum + sink.held, 0);
      for (let n = 0; n < 3; n += 1) await post(n);
      await until('three to be held', async () => (await held()) === 3);
      expect(await recordsIn(store)).toEqual([]);
      const renamed = { type: 'files', path: place, rotate: { every: '1h' }, continues: 'archive' };
      await reload({ lake: renamed });
      await until('them to be put', async () => (await recordsIn(store)).length === 3);
      for (let n = 3; n < 6; n += 1) await post(n);
      await until('three more to be held', async () => (await held()) === 3);
      await reload({ out: { type: 'files', path: join(dirname(config), 'folder') } });
      await until('them to be put', async () => (await recordsIn(store)).length === 6);
      const only = async () =>
        (await receiver.status()).journal.cursors.map(({ sink }) => sink).join() === 'out';
      await until('the sink to have left', only);
      expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
      await checkChains(store);
    });

    test('a flush puts what is held, and names the objects', async () => {
      const { config, place, store, env } = await scene(emulator, 'flush', { rotate: { every: '1h' } });
      const receiver = await Receiver.start(config, { env });
      const { id, body } = madeUpEvent(1);
      await postSigned(receiver.url, body, { id });
      const { code, stdout } = await millraceProcess(['flush', '--config', config], { env });
      const [found] = await recordsIn(store);
      expect([code, found?.id]).toEqual([0, id]);
      expect(stdout).toContain(`${place}/${found?.file}`);
      expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    });

    test('an erasure finds what is held, and leaves nothing of it in the spool', async () => {
      const { config, env } = await scene(emulator, 'erase', { rotate: { every: '1h' } });
      const receiver = await Receiver.start(config, { env });
      const { id, body } = madeUpEvent(1);
      const { user_id: user } = JSON.parse(body.toString()) as { user_id: string };
      await postSigned(receiver.url, body, { id });
      const held = async () => (await receiver.status()).sinks[0]?.held === 1;
      await until('it to be held', held);
      await millraceProcess(['erase', user, '--now', '--config', config], { env });
      expect((await receiver.status()).sinks[0]?.held).toBe(0);
      const left = readdirSync(join(dirname(config), 'spool'), { recursive: true, encoding: 'utf8' });
      expect(left.filter((name) => /\.(part|sent|ndjson)/.test(name))).toEqual([]);
      expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    });
  },
  ONE,
);
