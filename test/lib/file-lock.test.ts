import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tryLock } from '../../src/lib/file-lock.ts';
import { temporaryFolder } from '../support/folders.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';

test('a symbolic link in the place of a lock is not followed, whatever is at its end', async () => {
  const folder = await temporaryFolder();
  const target = join(folder, 'target');
  writeFileSync(target, '');
  for (const [name, end] of [
    ['to-a-file', target],
    ['to-nothing', join(folder, 'nothing')],
  ] as const) {
    const path = join(folder, name);
    symlinkSync(end, path);
    expect(() => tryLock(path)).toThrow(`${path} is a symbolic link; it is not followed`);
  }
  expect(readFileSync(target, 'utf8')).toBe('');
  expect(() => statSync(join(folder, 'nothing'))).toThrow('ENOENT');
  mkdirSync(join(folder, 'inner'));
  expect(() => tryLock(join(folder, 'inner'))).toThrow('not a plain file');
});

const lack = lacksProgram('mkfifo');

test.skipIf(lack !== null)(`a FIFO in the place of a lock is not waited for${skipped(lack)}`, async () => {
  const path = join(await temporaryFolder(), 'lock');
  execFileSync('mkfifo', [path]);
  expect(() => tryLock(path)).toThrow('not a plain file');
});

test('a second try for a lock neither gets it nor loses it for the first', async () => {
  const path = join(await temporaryFolder(), 'lock');
  const first = tryLock(path);
  expect(first).not.toBeNull();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(tryLock(path)).toBeNull();
  // From another process: POSIX would let it in if the second try had closed a descriptor of the file.
  const script = `import { tryLock } from ${JSON.stringify(join(import.meta.dirname, '../../src/lib/file-lock.ts'))};
    console.log(tryLock(${JSON.stringify(path)}) === null)`;
  const other = execFileSync(process.execPath, ['--input-type=module', '--eval', script]);
  expect(other.toString().trim()).toBe('true');
  first?.release();
  const next = tryLock(path);
  expect(next).not.toBeNull();
  next?.release();
});
