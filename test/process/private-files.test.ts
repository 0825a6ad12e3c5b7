import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { FIRST_SEGMENT } from '../support/journal-files.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';

/** Name and mode of each file of a folder. */
function modes(folder: string): Record<string, string> {
  const names = readdirSync(folder).toSorted();
  return Object.fromEntries(
    names.map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]),
  );
}

test('nobody but its user can read a file of the journal, also one of a journal made before', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const journal = join(folder, 'journal');
  const first = await ReceiverProcess.start(config);
  expect(await postSigned(first.url)).toMatchObject({ status: 202 });
  expect((statSync(journal).mode & 0o777).toString(8)).toBe('700');
  for (const [name, mode] of Object.entries(modes(journal))) expect([name, mode]).toEqual([name, '600']);
  await first.kill('SIGKILL');
  expect(first.stderr).not.toContain('can read this folder');

  for (const name of readdirSync(journal)) chmodSync(join(journal, name), 0o664);
  const next = await ReceiverProcess.start(config);
  expect(await postSigned(next.url, undefined, { id: 'msg_two' })).toMatchObject({ status: 202 });
  expect(Object.keys(modes(journal))).toEqual(expect.arrayContaining(['journal.db-wal', FIRST_SEGMENT]));
  for (const [name, mode] of Object.entries(modes(journal))) expect([name, mode]).toEqual([name, '600']);
});

test('a journal or erasure folder that others can read is warned of at the start', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  for (const name of ['journal', 'erasure']) {
    mkdirSync(join(folder, name));
    chmodSync(join(folder, name), 0o755);
  }
  const receiver = await ReceiverProcess.start(config);
  const warned = receiver.logLines().filter(({ msg }) => String(msg).startsWith('other users can read'));
  expect(warned.map(({ key, mode, level }) => [key, mode, level])).toEqual([
    ['journal.path', '755', 40],
    ['erasure.path', '755', 40],
  ]);
  expect((await millrace(['status', '--config', config])).code).toBe(0);
});
