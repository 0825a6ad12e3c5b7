import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { eraseCommand } from '../../../src/cli/erase/command.ts';
import { EXIT } from '../../../src/core/errors.ts';
import type { ErasureResult } from '../../../src/core/erasure.ts';
import { openStore } from '../../../src/storage/open.ts';
import { keysIn, read } from '../../archive/store-archive.ts';
import { run } from '../../cli/run.ts';
import { MASTER_TEXT } from '../seal/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import { describeOnStores, storageSettings } from '../../support/object-stores/emulators.ts';
import { Receiver } from '../../support/receiver.ts';
import { postSigned } from '../../support/signed-events.ts';
import { until } from '../../support/until.ts';
import { find, userId } from './support.ts';

interface Place {
  readonly folder: string;
  /** Writes the config again, with these files sinks by their names. */
  readonly configure: (sinks: Readonly<Record<string, object>>, more?: object) => string;
  readonly path: (name: string) => string;
}

async function makePlace(): Promise<Place> {
  const folder = await temporaryFolder();
  const path = (name: string): string => join(folder, name);
  const configure = (sinks: Readonly<Record<string, object>>, more: object = {}): string =>
    writeConfig(folder, {
      ...more,
      erasure: { path: path('erasure') },
      sinks: Object.fromEntries(
        Object.entries(sinks).map(([name, sink]) => [name, { type: 'files', ...sink }]),
      ),
      routes: [{ match: '*', to: Object.keys(sinks) }],
    });
  return { folder, configure, path };
}

/** Lines of the unfinished files below a folder. */
const unfinished = (folder: string): number =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.part'))
    .reduce((sum, name) => sum + readFileSync(join(folder, name), 'utf8').split('\n').length - 1, 0);

async function post({ url }: Receiver, ids: string): Promise<void> {
  for (const user of [1, 2]) {
    const event = {
      event_type: 'made.up',
      team_id: '00000000-0000-4000-8000-0000000000aa',
      user_id: userId(user),
      client_user_id: `client-${user}`,
    };
    const body = Buffer.from(JSON.stringify(event));
    expect((await postSigned(url, body, { id: `${ids}${user}` })).status).toBe(202);
  }
}

/** Runs a receiver that takes an event of each of two users and ends when its sinks have them. @param into their folders */
async function receive(config: string, ids: string, ...into: readonly string[]): Promise<void> {
  const receiver = await Receiver.start(config);
  await post(receiver, ids);
  for (const folder of into) await until(`both in ${folder}`, () => unfinished(folder) === 2);
  await receiver.kill('SIGTERM');
}

async function erase(config: string): Promise<{ exit: number; result: ErasureResult }> {
  const { exit, stdout } = await run(eraseCommand, [userId(1), '--now', '--json', '--config', config]);
  return { exit, result: JSON.parse(stdout) as ErasureResult };
}

test('an erasure searches what sinks of earlier configs and replays have written, and waits for what is not there', async () => {
  const { folder, configure, path } = await makePlace();
  await receive(
    configure({ archive: { path: path('first') }, other: { path: path('removed') } }),
    'a',
    path('first'),
    path('removed'),
  );
  await receive(configure({ archive: { path: path('second') } }), 'b', path('second'));
  const withCopy = configure({ archive: { path: path('second') }, copy: { path: path('copy') } });
  const { code, stderr } = await millrace(['replay', path('first'), '--to', 'copy', '--config', withCopy]);
  expect(code, stderr).toBe(0);
  await receive(configure({ archive: { path: path('gone') } }), 'c', path('gone'));
  rmSync(path('gone'), { recursive: true });
  const config = configure({ archive: { path: path('third') } });
  await receive(config, 'd', path('third'));
  const written = ['first', 'removed', 'second', 'copy', 'third'].map(path);
  for (const each of written) expect(find([each], [userId(1)]).length).toBeGreaterThan(0);
  const waits = await erase(config);
  expect([waits.exit, waits.result.receipts, waits.result.left.map(({ store }) => store)]).toEqual([
    EXIT.partial,
    [],
    [path('gone')],
  ]);
  const [note = ''] = /\S+\/heads\/\S+/.exec(waits.result.left[0]?.reason ?? '') ?? [];
  rmSync(note);
  const { exit, result } = await erase(config);
  expect([exit, result.left]).toEqual([EXIT.done, []]);
  expect(result.receipts[0]?.stores).toEqual(expect.arrayContaining(written));
  expect(find([folder], [userId(1)])).toEqual([]);
  for (const each of written) expect(find([each], [userId(2)]).length).toBeGreaterThan(0);
  for (const each of written) {
    const verified = await millrace(['archive', 'verify', each, '--config', config]);
    expect(verified.code, verified.stdout + verified.stderr).toBe(0);
  }
});

test('the folder of a disk that is not mounted is not taken for an empty archive', async () => {
  const { configure, path } = await makePlace();
  await receive(configure({ archive: { path: path('first') } }), 'a', path('first'));
  renameSync(path('first'), path('unmounted'));
  mkdirSync(path('first'));
  const config = configure({ archive: { path: path('second') } });
  const { exit, result } = await erase(config);
  expect([exit, result.receipts, result.left[0]?.store]).toEqual([EXIT.partial, [], path('first')]);
  rmSync(path('first'), { recursive: true });
  renameSync(path('unmounted'), path('first'));
  expect((await erase(config)).exit).toBe(EXIT.done);
  expect(find([path('first')], [userId(1)])).toEqual([]);
});

test('a note that is not as it was signed is on the receipt: its archive is not known', async () => {
  const { configure, path } = await makePlace();
  await receive(configure({ archive: { path: path('first') } }), 'a', path('first'));
  const [note = ''] = readdirSync(path('erasure/heads'));
  const file = join(path('erasure/heads'), note);
  writeFileSync(file, readFileSync(file, 'utf8').replace('first', 'other'));
  const { exit, result } = await erase(configure({ archive: { path: path('second') } }));
  expect([exit, result.receipts[0]?.not_searched]).toEqual([EXIT.partial, [file]]);
});

test('one that was moved, with a link where it was, is searched once', async () => {
  const { configure, path } = await makePlace();
  await receive(configure({ archive: { path: path('first') } }), 'a', path('first'));
  renameSync(path('first'), path('moved'));
  symlinkSync(path('moved'), path('first'));
  const { exit, result } = await erase(configure({ archive: { path: path('moved') } }));
  expect([exit, result.receipts[0]?.stores]).toEqual([EXIT.done, ['journal', path('moved')]]);
});

test('one that is sealed, with keys that the config has no more, is said not to be searched', async () => {
  const { configure, path } = await makePlace();
  const encrypt = { store: path('keys'), masterKey: MASTER_TEXT };
  await receive(configure({ archive: { path: path('sealed'), encrypt } }), 'a', path('sealed'));
  const { exit, result } = await erase(configure({ archive: { path: path('plain') } }));
  expect([exit, result.receipts[0]?.not_searched]).toEqual([EXIT.partial, [path('sealed')]]);
  expect(result.left[0]?.reason).toContain('of a sink that is not in the config');
});

describeOnStores(
  ': an erasure',
  (emulator) => {
    test('searches what sinks of earlier configs have sent to a store', async () => {
      const { configure, path } = await makePlace();
      const given = emulator.settings() as { readonly azblob: { readonly connectionString: string } };
      writeFileSync(path('connection'), given.azblob.connectionString);
      const storage = { azblob: { connectionString: `\${file:${path('connection')}}` } };
      const url = `${await emulator.bucket('earlier')}/archive`;
      const receiver = await Receiver.start(configure({ archive: { path: url } }, { storage }));
      await post(receiver, 'a');
      const store = await openStore(url, storageSettings(given));
      const kept = async (): Promise<string> => {
        const texts: string[] = [];
        for (const key of await keysIn(store))
          if (key.endsWith('.gz')) texts.push(gunzipSync(await read(store, key)).toString());
        return texts.join('');
      };
      await until('both to be taken', () => unfinished(path('spool')) === 2);
      await receiver.kill('SIGTERM');
      for (const user of [1, 2]) expect(await kept()).toContain(userId(user));
      const { exit, result } = await erase(configure({ archive: { path: path('here') } }, { storage }));
      expect([exit, result.left]).toEqual([EXIT.done, []]);
      expect(result.receipts[0]?.stores).toContain(url);
      expect(await kept()).not.toContain(userId(1));
      expect(await kept()).toContain(userId(2));
    });
  },
  ['azblob'],
);
