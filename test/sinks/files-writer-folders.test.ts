import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { holdWriters } from '../../src/privacy/erase/writers.ts';
import { removePart } from '../../src/sinks/files/part.ts';
import { claimWriterFolders } from '../../src/sinks/files/writer-folders.ts';
import { lacksSyncs, watchSyncs } from '../support/synced.ts';
import { skipped } from '../support/requirements.ts';
import { makeContext } from './support.ts';

test.skipIf(lacksSyncs !== null)(
  `the folder of a writer that was killed is made durable before anything is written into it${skipped(lacksSyncs)}`,
  async () => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-writers-')));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    mkdirSync(join(root, '_open', 'abcdef012345'), { recursive: true });
    const synced: string[] = [];
    await watchSyncs((path) => synced.push(path));
    const folders = await claimWriterFolders(root, makeContext().log);
    for (const { lock } of folders) lock.release();
    expect(folders.map(({ path }) => path)).toEqual([join(root, '_open', 'abcdef012345')]);
    // Its name lies there.
    expect(synced).toContain(join(root, '_open'));
  },
);

test('a part is removed durably also when its folder was removed with another part', async () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-writers-')));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  await expect(
    removePart({ path: join(root, 'dt=2026-11-20', 'hour=10', 'made-up.part') }),
  ).resolves.toBeUndefined();
});

test('the folder that a killed writer left is claimed after the erasure that is in it, not left for the next start', async () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-writers-')));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, '_open', 'abcdef012345'), { recursive: true });
  const erasure = await holdWriters(root);
  await expect(claimWriterFolders(root, makeContext().log)).rejects.toThrow('an erasure is in');
  erasure.release();
  const [folder] = await claimWriterFolders(root, makeContext().log);
  expect(folder?.path).toBe(join(root, '_open', 'abcdef012345'));
  folder?.lock.release();
});
