import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { tryLock } from '../../src/lib/file-lock.ts';
import { nameThisProcess } from '../../src/lib/lock-owner.ts';
import { continuesRun, readState, WorkFolder, writeState } from '../../src/lib/work-folder.ts';
import { temporaryFolder } from '../support/folders.ts';

const MODULE = fileURLToPath(new URL('../../src/lib/work-folder.ts', import.meta.url));

describe('a folder that one at a time writes', () => {
  test('it is made, held, and left without a trace', async () => {
    const path = join(await temporaryFolder(), 'deep', 'down');
    nameThisProcess('made-up');
    onTestFinished(() => nameThisProcess('millrace'));
    const first = await WorkFolder.take(path);
    expect(readdirSync(path).toSorted()).toEqual(['.millrace-lock', '.millrace-lock-owner']);
    expect(statSync(join(path, '.millrace-lock')).mode & 0o077).toBe(0);
    await expect(WorkFolder.take(path)).rejects.toThrow(
      `${path} is being written by made-up (process ${process.pid})`,
    );
    first.release();
    expect(readdirSync(path)).toEqual([]);
    const second = await WorkFolder.take(path);
    // A second release does not release the lock of the next owner.
    first.release();
    await expect(WorkFolder.take(path)).rejects.toThrow('is being written by');
    second.release();
  });

  test('names that are stale, cut short or not plain never hold it, and none is printed', async () => {
    const path = await temporaryFolder();
    const name = join(path, '.millrace-lock-owner');
    const left = [
      JSON.stringify({ command: 'backfill', pid: process.pid, host: hostname() }),
      '{"command":"back',
      JSON.stringify({ command: '\u001b[31mred', pid: 1, host: 'made-up' }),
    ];
    for (const text of left) {
      writeFileSync(name, text);
      (await WorkFolder.take(path)).release();
    }
    const lock = tryLock(join(path, '.millrace-lock'));
    writeFileSync(name, left[2] ?? '');
    await expect(WorkFolder.take(path)).rejects.toThrow(/ is being written by another process$/);
    lock?.release();
  });

  test('a symbolic link in the place of the name is not followed', async () => {
    const path = await temporaryFolder();
    const elsewhere = join(path, 'elsewhere');
    writeFileSync(elsewhere, 'as it was');
    for (const end of ['', '.tmp']) symlinkSync(elsewhere, join(path, `.millrace-lock-owner${end}`));
    (await WorkFolder.take(path)).release();
    expect(readFileSync(elsewhere, 'utf8')).toBe('as it was');
  });

  test('processes that take and release it again and again never have it together', async () => {
    const path = await temporaryFolder();
    const script = `
      import { mkdirSync, rmdirSync } from 'node:fs';
      import { WorkFolder } from ${JSON.stringify(MODULE)};
      const path = process.argv[1];
      for (let n = 0; n < 50;) {
        const folder = await WorkFolder.take(path).catch(() => null);
        if (folder === null) continue;
        mkdirSync(path + '/held');
        await new Promise(setImmediate);
        rmdirSync(path + '/held');
        folder.release();
        n += 1;
      }`;
    const run = (): Promise<string> =>
      new Promise((resolve) =>
        execFile(process.execPath, ['--input-type=module', '-e', script, path], (_error, _out, stderr) =>
          resolve(stderr),
        ),
      );
    expect(await Promise.all([run(), run(), run()])).toEqual(['', '', '']);
    expect(readdirSync(path)).toEqual([]);
  });

  test('one that lets go within a moment is waited for', async () => {
    const path = await temporaryFolder();
    const first = await WorkFolder.take(path);
    const second = WorkFolder.take(path);
    await wait(1);
    first.release();
    const taken = await second;
    expect(taken.path).toBe(path);
    taken.release();
  });
});

describe('what a run has left in its folder', () => {
  const run = { kind: 'replay', fingerprint: 'ours', resume: true, otherwise: 'name another folder' };

  test('is continued by the same command, with --resume, and refused to all others', () => {
    expect(continuesRun('/made-up', null, { ...run, resume: false })).toBe(false);
    expect(continuesRun('/made-up', 'ours', run)).toBe(true);
    expect(() => continuesRun('/made-up', 'theirs', run)).toThrow(
      '/made-up holds another replay; name another folder',
    );
    for (const left of ['ours', 'theirs'])
      expect(() => continuesRun('/made-up', left, { ...run, resume: false })).toThrow(
        '/made-up holds an unfinished replay: add --resume',
      );
  });

  test('is read as it was written, is nothing at first, and is refused when it is no JSON', async () => {
    const path = await temporaryFolder();
    expect(readState(path, 'state.json')).toBeNull();
    await writeState(path, 'state.json', { place: 1 }, 0o600);
    expect(readFileSync(join(path, 'state.json'), 'utf8')).toBe('{"place":1}\n');
    expect(readState(path, 'state.json')).toEqual({ place: 1 });
    writeFileSync(join(path, 'state.json'), '{"pla');
    expect(() => readState(path, 'state.json')).toThrow(join(path, 'state.json'));
  });
});
