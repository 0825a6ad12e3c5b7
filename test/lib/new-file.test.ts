import { hash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { fillNew, HashedFile, NewFile, writeDurably, writeOnce } from '../../src/lib/new-file.ts';
import { temporaryFolder } from '../support/folders.ts';

afterEach(() => vi.restoreAllMocks());

const EIO = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });

async function failNext(call: 'sync' | 'write'): Promise<void> {
  const handle = await open(import.meta.filename);
  await handle.close();
  vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, call).mockRejectedValueOnce(EIO);
}

test('a new file takes the place of what was left under its name, and knows what is in it', async () => {
  const path = join(await temporaryFolder(), 'rows.part');
  writeFileSync(path, 'what an earlier run has left, which was longer');
  const file = await fillNew(HashedFile.create(path, 0o600), async (target) => {
    for (const text of ['one\n', '', 'two\n']) await target.write(Buffer.from(text));
  });
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
  expect(file.facts()).toEqual({ bytes: 8, sha256: hash('sha256', 'one\ntwo\n') });
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test.each(['sync', 'write'] as const)(
  'a %s that fails leaves no new file, and the old one as it was',
  async (call) => {
    const folder = await temporaryFolder();
    await writeDurably(folder, 'state.json', 'before');
    await failNext(call);
    await expect(writeDurably(folder, 'state.json', 'after')).rejects.toThrow('EIO');
    expect(readdirSync(folder)).toEqual(['state.json']);
    expect(readFileSync(join(folder, 'state.json'), 'utf8')).toBe('before');
    await writeDurably(folder, 'state.json', 'after');
    expect(readFileSync(join(folder, 'state.json'), 'utf8')).toBe('after');
  },
);

test('of those who make a file once, the first one’s content stays', async () => {
  const folder = await temporaryFolder();
  const contents = Array.from({ length: 10 }, (_, n) => Buffer.from(`made-up ${n}`));
  await Promise.all(contents.map((content) => writeOnce(join(folder, 'key'), content)));
  expect(readdirSync(folder)).toEqual(['key']);
  const kept = readFileSync(join(folder, 'key'), 'utf8');
  await writeOnce(join(folder, 'key'), Buffer.from('later'));
  expect([kept, readFileSync(join(folder, 'key'), 'utf8')]).toEqual([
    expect.stringMatching(/^made-up \d$/),
    kept,
  ]);
});

test('a link under its name is replaced, never followed, and a folder is left alone', async () => {
  const folder = await temporaryFolder();
  writeFileSync(join(folder, 'secret'), 'keep');
  symlinkSync(join(folder, 'secret'), join(folder, 'link'));
  await fillNew(NewFile.create(join(folder, 'link')), (file) => file.write(Buffer.from('new')));
  expect([readFileSync(join(folder, 'secret'), 'utf8'), readFileSync(join(folder, 'link'), 'utf8')]).toEqual([
    'keep',
    'new',
  ]);
  mkdirSync(join(folder, 'folder'));
  await expect(NewFile.create(join(folder, 'folder'))).rejects.toThrow(/directory/);
});
