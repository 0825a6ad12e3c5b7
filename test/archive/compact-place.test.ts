import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { holdFolder } from '../../src/archive/compact-place.ts';
import { openStore } from '../../src/storage/open.ts';
import { tempFolder } from '../sinks/support.ts';
import { replaceFiles } from '../support/replaced-files.ts';

it('writes over nothing, and says so also where what it made cannot be removed', async () => {
  const root = tempFolder();
  const place = await holdFolder(root, await openStore(root), undefined);
  onTestFinished(() => place.release());
  writeFileSync(join(root, 'one.ndjson'), 'one\n');
  const put = (): Promise<string> => place.put('one.ndjson', Buffer.from('two\n'), 'one.ndjson');
  await expect(put()).rejects.toMatchObject({ code: 'EEXIST' });
  expect(readdirSync(join(root, '_open')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  // One makes sure that nothing is in the way of the new file.
  let removals = 0;
  replaceFiles(({ rm }) => ({
    rm: (...given) => ((removals += 1) > 1 ? Promise.reject(new Error('EIO: made up')) : rm(...given)),
  }));
  await expect(put()).rejects.toMatchObject({ code: 'EEXIST' });
  expect(removals).toBe(2);
});
