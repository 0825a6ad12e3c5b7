import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/load.ts';
import type { ErasureResult } from '../../src/core/erasure.ts';
import { eventOf, find, secretOf, userId } from '../privacy/erase/support.ts';
import { runReconcile } from '../replay/reconcile/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, ROOT, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';

const FILES = pathToFileURL(join(ROOT, 'src/sinks/files')).href;

/** A sink of a user's own that keeps an archive, in a folder that its option `lake` names. */
const LAKE = `
import { parseOptions as optionsOf } from '${FILES}/config.ts';
export { createSink } from '${FILES}/sink.ts';
export const parseOptions = ({ lake }) => optionsOf({ path: lake });
export const describe = ({ lake }) => ({
  folders: [{ path: lake, option: 'lake', erase: true }],
  archive: lake,
  keepsClaims: true,
});`;

function configOf(folder: string, changes: Readonly<Record<string, object>> = {}): string {
  writeFileSync(join(folder, 'lake.mjs'), LAKE);
  const sinks = {
    own: { type: './lake.mjs', lake: join(folder, 'lake') },
    small: { type: 'stdout', oversize: 'claim-check' },
  };
  return writeConfig(folder, { sinks, routes: [{ match: '*', to: ['own'] }], ...changes });
}

test('a sink of a user’s own that describes itself has its folder to itself, and keeps large events', async () => {
  const folder = await temporaryFolder();
  const { config } = await resolveConfig({ file: configOf(folder), env: {} });
  expect(config.sinks['own']?.description.archive).toBe(join(folder, 'lake'));
  const clash = configOf(folder, { journal: { path: join(folder, 'lake', 'journal') } });
  await expect(resolveConfig({ file: clash, env: {} })).rejects.toMatchObject({
    problems: [
      { key: 'sinks.own.lake', message: expect.stringContaining('holds the folder of journal.path') },
    ],
  });
});

test('it is counted by reconcile and searched by an erasure, in a running receiver and without one', async () => {
  const folder = await temporaryFolder();
  const config = configOf(folder);
  const receiver = await Receiver.start(config);
  await receiver.send([0, 1, 2].flatMap((n) => [1, 2, 3].map((user) => eventOf(user, n))));
  await receiver.drained();
  const { stdout, exit } = await runReconcile(['--config', config, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({
    sinks: [{ sink: 'own', counted_from: 'files', delivered: 9, missing: 0 }, { sink: 'small' }],
  });
  expect(exit).toBe(0);

  const erase = async (user: number): Promise<ErasureResult> => {
    const { code, stdout: result } = await millrace(
      ['erase', userId(user), '--now', '--json'].concat('--config', config),
    );
    expect(code).toBe(0);
    expect(find([join(folder, 'lake')], [secretOf(user)])).toEqual([]);
    return JSON.parse(result.split('\n').at(-2) ?? '') as ErasureResult;
  };
  expect((await erase(1)).files_searched).toBeGreaterThan(0);
  await receiver.kill('SIGTERM');
  expect((await erase(2)).files_searched).toBeGreaterThan(0);
  expect(find([join(folder, 'lake')], [secretOf(3)])).not.toEqual([]);
  expect((await runReconcile(['--config', config])).exit).toBe(0);
});

test.each([
  ['a promise', 'async () => ({})'],
  ['a folder without a path', "() => ({ folders: [{ option: 'lake', erase: true }] })"],
  ['keys that cannot be opened', "() => ({ keys: { store: './keys', option: 'keys' } })"],
])('what it says of itself is not taken on trust: %s', async (_, describe) => {
  const folder = await temporaryFolder();
  const file = configOf(folder);
  writeFileSync(
    join(folder, 'lake.mjs'),
    LAKE.replace(/export const describe = [^]*$/, `export const describe = ${describe};`),
  );
  await expect(resolveConfig({ file, env: {} })).rejects.toMatchObject({
    problems: expect.arrayContaining([
      expect.objectContaining({ key: 'sinks.own', message: expect.stringContaining('describe()') }),
    ]),
  });
});
