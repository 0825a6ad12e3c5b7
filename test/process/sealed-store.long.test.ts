import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { bytesOf } from '../sinks/store-support.ts';
import { millrace, millraceProcess, writeConfig } from '../support/millrace.ts';
import { describeOnStores } from '../support/object-stores/emulators.ts';
import { readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { gunzipSync } from 'node:zlib';
import { scene } from './store-scene.ts';

const MASTER = `mrk_${Buffer.alloc(32, 5).toString('base64')}`;

describeOnStores(
  ' as a sealed archive',
  (emulator) => {
    test('killed, verified, played back, erased from: what is there is sealed, and of an erased user nothing opens', async () => {
      const made = await scene(emulator, 'sealed', {});
      const folder = dirname(made.config);
      const env = { ...made.env, MILLRACE_MASTER_KEY: MASTER };
      const encrypt = { store: join(folder, 'keys'), masterKey: '${MILLRACE_MASTER_KEY}' };
      const sealed = { type: 'files', path: made.place, encrypt };
      const out = (name: string) => ({ type: 'files', path: join(folder, name) });
      const config = writeConfig(folder, {
        storage: made.storage,
        sinks: { archive: sealed, before: out('before'), after: out('after') },
        routes: [{ match: '*', to: ['archive'] }],
      });
      let receiver: Serving = await ReceiverProcess.start(config, { env });
      const sent = new Map<string, string>();
      const post = async (from: number, to: number): Promise<void> => {
        for (let n = from; n < to; n += 1) {
          const { id, body } = madeUpEvent(n, 'daily.data.meal.created');
          expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
          sent.set((JSON.parse(body.toString()) as { user_id: string }).user_id, id);
        }
      };
      await post(0, 6);
      await receiver.kill('SIGKILL');
      receiver = await Receiver.start(config, { env });
      await post(6, 10);
      expect((await millraceProcess(['flush', 'archive', '--config', config], { env })).code).toBe(0);
      const run = async (...args: string[]): Promise<void> => {
        const { code, stdout, stderr } = await millrace([...args, '--config', config], { env });
        expect(code, `${args.join(' ')}\n${stdout}\n${stderr}`).toBe(0);
      };
      await run('archive', 'verify', made.place);
      await run('replay', made.place, '--to', 'before');
      const idsIn = async (name: string) => [...(await readBack(join(folder, name))).keys()].toSorted();
      const all = [...sent.values()].toSorted();
      expect(await idsIn('before')).toEqual(all);
      const [[user, id] = ['', '']] = sent;
      await run('erase', user, '--now');
      await run('archive', 'verify', made.place);
      expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
      await run('replay', made.place, '--to', 'after');
      expect(await idsIn('after')).toEqual(all.filter((each) => each !== id));
      for await (const { key } of made.store.list(''))
        if (key.endsWith('.gz'))
          expect(gunzipSync(await bytesOf(made.store, key)).toString()).not.toContain('meal');
    });
  },
  ['azblob'],
);
