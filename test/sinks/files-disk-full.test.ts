import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { verifyArchive } from '../../src/archive/verify.ts';
import { deliver, filesSink, ids, signal } from './support.ts';

/** A file system of its own, or null where this user may not mount one. */
function mountSmall(size: string): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-small-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    rmdirSync(folder);
    return null;
  }
  onTestFinished(() => {
    execFileSync('umount', [folder]);
    rmdirSync(folder);
  });
  return folder;
}

it('fault 6: a full disk: claims nothing, leaves no torn line, continues once there is room', async ({
  skip,
}) => {
  const path = mountSmall('1m');
  skip(path === null, 'mounting a tmpfs is not permitted here');
  if (path === null) return;
  const { sink } = filesSink(path);
  await sink.open();
  const big = { body: Buffer.from(`{"x":"${'x'.repeat(1000)}"}`) };
  await sink.send(deliver(1, 50, big), signal);
  const ballast = join(path, 'ballast');
  writeFileSync(ballast, Buffer.alloc(850 * 1024));
  const results = await sink.send(deliver(51, 300, big), signal);
  for (const result of results) expect(result).toMatchObject({ status: 'retry', sink: true });
  expect(await ids(path, true)).toHaveLength(50);
  rmSync(ballast);
  for (const result of await sink.send(deliver(51, 300, big), signal)) {
    expect(result).toEqual({ status: 'delivered' });
  }
  await sink.close(signal);
  expect(await ids(path)).toHaveLength(350);
  expect((await verifyArchive(path)).differences).toEqual([]);
});
