import { writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openPlain, READ } from '../../src/lib/durable.ts';
import { openFile } from '../../src/tables/ndjson/input.ts';
import { BodyReader } from '../../src/storage/body.ts';
import { temporaryFolder } from '../support/folders.ts';
import { openFiles } from '../support/open-files.ts';

type Opens = (path: string) => Promise<unknown>;
const body: Opens = (file) => BodyReader.open({ file, size: 4, sha256: '' });

test.each<[what: string, looks: number, opens: Opens]>([
  ['a plain file', 1, (path) => openPlain(path, READ)],
  ['a document', 1, openFile],
  ['the body of an object', 1, body],
  ['the body of an object', 2, body],
])('%s is not left open when the disk fails at look %i at it', async (_, looks, opens) => {
  const path = join(await temporaryFolder(), 'file');
  writeFileSync(path, 'made');
  const one = await open(path);
  const handles = Object.getPrototypeOf(one) as FileHandle;
  await one.close();
  const stat = vi.spyOn(handles, 'stat');
  onTestFinished(() => stat.mockRestore());
  const stats = { isFile: () => true };
  for (let n = 1; n < looks; n += 1) stat.mockResolvedValueOnce(stats as never);
  stat.mockRejectedValueOnce(new Error('EIO, made up'));
  await expect(opens(path)).rejects.toThrow('made up');
  expect(openFiles()).not.toContain(path);
});
