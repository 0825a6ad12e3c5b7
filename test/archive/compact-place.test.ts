import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { holdFolder } from '../../src/archive/compact-place.ts';
import { openStore } from '../../src/storage/open.ts';
import { tempFolder } from '../sinks/support.ts';

/** Removals that work before one does not. */
const left = vi.hoisted(() => ({ removals: Number.POSITIVE_INFINITY }));
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  const rm: typeof real.rm = (...given) =>
    (left.removals -= 1) < 0 ? Promise.reject(new Error('EIO: made up')) : real.rm(...given);
  return { ...real, rm };
});

it('writes over nothing, and says so also where what it made cannot be removed', async () => {
  const root = tempFolder();
  const place = await holdFolder(root, await openStore(root), undefined);
  onTestFinished(() => place.release());
  writeFileSync(join(root, 'one.ndjson'), 'one\n');
  const put = (): Promise<string> => place.put('one.ndjson', Buffer.from('two\n'), 'one.ndjson');
  await expect(put()).rejects.toMatchObject({ code: 'EEXIST' });
  expect(readdirSync(join(root, '_open')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  // One makes sure that nothing is in the way of the new file.
  left.removals = 1;
  onTestFinished(() => void (left.removals = Number.POSITIVE_INFINITY));
  await expect(put()).rejects.toMatchObject({ code: 'EEXIST' });
});
