import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { deliver, ids } from '../sinks/support.ts';
import { proofIn, writeFiles } from '../support/archives.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';

const FILES = 4;

/** A signed archive of small files, as a receiver with this config writes it. */
async function place(): Promise<{ archive: string; config: string; expected: string[] }> {
  const folder = await temporaryFolder();
  const erasure = join(folder, 'erasure');
  const config = writeConfig(folder, { erasure: { path: erasure } });
  const archive = join(folder, 'archive');
  const batches = Array.from({ length: FILES }, (_, n) => deliver(1 + n * 5, 5, { headers: {} }));
  await writeFiles(archive, batches, { options: { rotate: { bytes: 1024 } }, proof: proofIn(erasure) });
  const expected = batches.flat().map(({ event }) => event.id);
  return { archive, config, expected: expected.toSorted() };
}

test('archive compact: a plan, the work, nothing more to do; what it wrote is signed, and proven by archive verify', async () => {
  const { archive, config, expected } = await place();
  const compact = (...more: string[]) =>
    millrace(['archive', 'compact', archive, '--min-age', '0s', ...more]);
  expect(await compact()).toMatchObject({ code: 2, stderr: expect.stringContaining('--config') });
  const plan = await compact('--config', config, '--dry-run', '--json');
  expect(plan.code).toBe(0);
  expect(JSON.parse(plan.stdout)).toMatchObject({ dry_run: true, replaced: FILES, complete: true });
  const done = await compact('--config', config);
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining(`${FILES} files became 1`) });
  expect((await ids(archive)).toSorted()).toEqual(expected);
  const verify = await millrace(['archive', 'verify', archive, '--config', config]);
  expect(verify).toMatchObject({ code: 0, stdout: expect.stringContaining('everything matches') });
  expect((await compact('--config', config)).stdout).toBe('nothing to join\n');
});

test('a line by a key that is not known is named, and hides no event', async () => {
  const { archive, config, expected } = await place();
  const other = await place();
  const args = ['archive', 'compact', archive, '--min-age', '0s', '--config', other.config];
  expect(await millrace(args)).toMatchObject({ code: 0 });
  expect((await ids(archive)).toSorted()).toEqual(expected);
  const verify = await millrace(['archive', 'verify', archive, '--config', config]);
  expect(verify.code).toBe(4);
  expect(verify.stdout).toContain('line_untrusted');
  expect(verify.stdout).not.toContain('file_missing');
});

test.each([
  [['--target-size', '1B'], 2, '--target-size 1B: must be from 1KiB to 1GiB'],
  [['--min-age', 'old'], 2, '--min-age old'],
  [[], 1, 'with its manifest'],
])('what cannot be done to an empty folder is refused by its name: %j', async (more, code, said) => {
  const ended = await millrace(['archive', 'compact', await temporaryFolder(), ...more]);
  expect(ended).toMatchObject({ code, stderr: expect.stringContaining(said) });
});

test('a file that the manifest does not list is named, and stays as it is', async () => {
  const { archive, config } = await place();
  writeFileSync(join(archive, 'foreign.ndjson'), '{}\n');
  const args = ['archive', 'compact', archive, '--min-age', '0s', '--config', config];
  const done = await millrace([...args, '--json']);
  expect(JSON.parse(done.stdout)).toMatchObject({ replaced: FILES, unlisted: ['foreign.ndjson'] });
  expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining('not joined foreign.ndjson') });
  expect(readFileSync(join(archive, 'foreign.ndjson'), 'utf8')).toBe('{}\n');
});
