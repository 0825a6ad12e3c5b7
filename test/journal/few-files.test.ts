import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';

const lack = lacksProgram('bash');
const LOG = new URL('../../src/journal/segments/log.ts', import.meta.url).href;

/** Begins a segment without a file to be had, with one, and with enough. */
const script = (folder: string): string => `
  import { closeSync, openSync } from 'node:fs';
  import { SegmentLog } from ${JSON.stringify(LOG)};
  const options = { folder: ${JSON.stringify(folder)}, salt: 1, segmentBytes: 1e6, position: null, least: 0 };
  const log = new SegmentLog(options, () => {});
  log.append(log.newFrame(), '{}', 1);
  const held = [];
  try { for (;;) held.push(openSync('/dev/null')); } catch {}
  const roll = () => { try { log.roll(); return 'rolled'; } catch ({ code, detail }) { return [code, detail]; } };
  const results = [roll()];
  closeSync(held.pop());
  results.push(roll());
  for (const fd of held) closeSync(fd);
  results.push(roll());
  console.log(JSON.stringify([...results, log.segments.length]));`;

test.skipIf(lack !== null)(
  `fault 54: a segment that cannot be opened for want of files is a 503 that passes${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const limited = 'ulimit -n 64; exec "$0" "$@"';
    const node = [process.execPath, '--input-type=module', '--eval', script(folder)];
    const output = execFileSync('bash', ['-c', limited, ...node], { encoding: 'utf8' });
    const short = ['journal_full', expect.stringContaining('raise ulimit -n')];
    expect(JSON.parse(output)).toEqual([short, short, 'rolled', 2]);
  },
);
