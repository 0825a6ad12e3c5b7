import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { ErasureResult } from '../../src/core/erasure.ts';
import { openStore } from '../../src/storage/open.ts';
import { keysIn, read } from '../archive/store-archive.ts';
import { eventOf, find, userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { describeOnStores, storageSettings } from '../support/object-stores/emulators.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

/** Names of the unfinished files below a folder. */
const unfinished = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.part'));

describeOnStores(
  ': what a kill left in a spool',
  (emulator) => {
    test('whose folder no config names any more is searched by an erasure, and finished in its own store by a start', async () => {
      const folder = await temporaryFolder();
      const path = (name: string): string => join(folder, name);
      const given = emulator.settings() as { readonly azblob: { readonly connectionString: string } };
      writeFileSync(path('connection'), given.azblob.connectionString);
      const url = `${await emulator.bucket('unfinished')}/archive`;
      const configure = (sink: object): string =>
        writeConfig(folder, {
          storage: { azblob: { connectionString: `\${file:${path('connection')}}` } },
          sinks: { archive: { type: 'files', ...sink } },
        });
      const first = await ReceiverProcess.start(configure({ path: url, spool: path('spools') }));
      for (const user of [1, 2]) {
        const { id, body } = eventOf(user, 0);
        expect((await postSigned(first.url, body, { id })).status).toBe(202);
      }
      const parts = (): string[] => unfinished(path('spools'));
      const records = (): number =>
        parts().reduce(
          (sum, name) => sum + readFileSync(join(path('spools'), name), 'utf8').split('\n').length - 1,
          0,
        );
      await until('both in the spool', () => records() === 2);
      await first.kill('SIGKILL');
      const config = configure({ path: path('here') });
      const run = await millrace(['erase', userId(1), '--now', '--json', '--config', config]);
      const { left } = JSON.parse(run.stdout) as ErasureResult;
      expect([run.code, left]).toEqual([0, []]);
      expect(find([path('spools')], [userId(1)])).toEqual([]);
      const second = await ReceiverProcess.start(config);
      await until('no unfinished file', () => parts().length === 0);
      await second.kill('SIGTERM');
      const store = await openStore(url, storageSettings(given));
      const files = (await keysIn(store)).filter((key) => key.endsWith('.gz'));
      const texts = await Promise.all(
        files.map(async (key) => gunzipSync(await read(store, key)).toString()),
      );
      expect(texts.join('')).toContain(userId(2));
      expect(texts.join('')).not.toContain(userId(1));
      await store.close();
      const verified = await millrace(['archive', 'verify', url, '--config', config]);
      expect(verified.code, verified.stdout + verified.stderr).toBe(0);
    });
  },
  ['azblob'],
);
