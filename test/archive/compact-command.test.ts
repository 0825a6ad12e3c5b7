import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProof } from '../../src/proof/open.ts';
import { FilesSink } from '../../src/sinks/files/sink.ts';
import { parseOptions } from '../../src/sinks/files/config.ts';
import { deliver, ids, makeContext, signal } from '../sinks/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';

const FILES = 4;

/** A signed archive of small files, as a receiver with this config writes it. */
async function place(): Promise<{ archive: string; config: string; expected: string[] }> {
  const folder = await temporaryFolder();
  const erasure = join(folder, 'erasure');
  const config = writeConfig(folder, { erasure: { path: erasure } });
  const archive = join(folder, 'archive');
  const proof = openProof({
    erasure: { path: erasure },
    proof: { key: null, trust: [] },
    receipts: { path: null },
  });
  const options = parseOptions({ path: archive, rotate: { bytes: 1024 } });
  const sink = new FilesSink(options, { ...makeContext(), proof });
  await sink.open();
  const expected: string[] = [];
  for (let n = 0; n < FILES; n += 1) {
    const events = deliver(1 + n * 5, 5, { headers: {} });
    expected.push(...events.map(({ event }) => event.id));
    await sink.send(events, signal);
  }
  await sink.close(signal);
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
  [['--target-size', '1B'], '--target-size 1B: must be from 1KiB to 1GiB'],
  [['--min-age', 'old'], '--min-age old'],
])('%s is refused by its name', async (more, said) => {
  const ended = await millrace(['archive', 'compact', await temporaryFolder(), ...more]);
  expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(said) });
});

test('what is no archive is refused', async () => {
  const ended = await millrace(['archive', 'compact', await temporaryFolder()]);
  expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('with its manifest') });
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
