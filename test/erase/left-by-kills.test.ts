import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../src/storage/open.ts';
import { temporaryFolder } from '../support/folders.ts';
import { erasing } from './objects-support.ts';
import { eraseNow, find, secretOf, userId } from './support.ts';

// What is there once its whole: a kill between its bytes and its name leaves it under another.
test.each([
  ['a request that was not finished', 'requests/0123456789abcdef.json.tmp'],
  ['what had been changed so far', 'progress.jsonl.tmp'],
  ['an object that was written anew and not put', 'work/0123456789abcdef.tmp'],
])('kill -9 leaves %s: the erasure of whom it names ends without it', async (_, name) => {
  const root = await temporaryFolder();
  const [folder, path] = [join(root, 'erasure'), join(root, 'store')];
  await (await openStore(path)).putIfAbsent('one.ndjson', { bytes: Buffer.from('{}\n') });
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), `${userId(1)} ${secretOf(1)}\n`);
  const erasures = erasing(folder, path);
  expect(await eraseNow(erasures, 1)).toMatchObject({ left: [], receipts: [{}] });
  expect(find([root], [userId(1), secretOf(1)])).toEqual([]);
});
