import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { LARGEST_BODY } from '../../src/core/archive.ts';
import { formatRecords } from '../../src/core/archive-record.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { MAIN, millraceProcess, writeConfig } from '../support/millrace.ts';
import { skipped } from '../support/requirements.ts';

const MIB = 2 ** 20;
const STATUS = '/proc/self/status';
const lack = existsSync(STATUS) ? null : `needs ${STATUS}`;
const MOST_MIB = 512;

/** Members follow one another as one text: what unpacks to a gigabyte is made in a moment. */
const repeated = (member: Buffer, times: number): Buffer[] => Array.from({ length: times }, () => member);
const SAME_BYTES = Buffer.alloc(10 * MIB, 'a');
const record = (n: number, text: string): Buffer =>
  formatRecords([contractEvent(n, { body: Buffer.from(`{"data":{"note":"${text}"}\n}`) })]);

/** Files that are small on disk: a line of 700 MiB, many of 1 MiB, lists within lists, and events as large as they can be. */
function writeBombs(folder: string): void {
  mkdirSync(folder);
  const end = Buffer.from('\n');
  const bombs = {
    'line.ndjson.gz': Buffer.concat([...repeated(gzipSync(SAME_BYTES), 70), gzipSync(end)]),
    'line.ndjson.zst': Buffer.concat([...repeated(zstdCompressSync(SAME_BYTES), 70), zstdCompressSync(end)]),
    'lines.ndjson.gz': Buffer.concat(repeated(gzipSync(record(1, 'a'.repeat(MIB))), 100)),
    'lists.ndjson.gz': Buffer.concat([
      ...repeated(gzipSync(Buffer.alloc(MIB, '{"a":[')), 100),
      gzipSync(end),
    ]),
    // Beyond Latin-1 a character takes two bytes.
    'largest.ndjson.gz': Buffer.concat(
      repeated(gzipSync(record(2, `中${'a'.repeat(LARGEST_BODY - 100)}`)), 4),
    ),
  };
  for (const [name, bytes] of Object.entries(bombs)) writeFileSync(join(folder, name), bytes);
}

/** Runs a command, and says how many MiB of memory it had at most. */
async function peakOf(args: readonly string[]) {
  // Not `maxRSS`: that of a process begins with the memory of the one that started it.
  const tells = `import { readFileSync } from 'node:fs';
    process.on('exit', () => process._rawDebug(/^VmHWM.*$/m.exec(readFileSync('${STATUS}', 'utf8'))[0]))`;
  const { code, stderr } = await millraceProcess(args, {
    program: [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(tells)}`, MAIN],
  });
  const peaks = [...stderr.matchAll(/^VmHWM:\s+(\d+) kB$/gm)].map(([, kib]) => Number(kib) / 1024);
  return { code, stderr, peak: Math.max(...peaks) };
}

const TOO_LONG = ['line.ndjson.gz', 'line.ndjson.zst', 'lists.ndjson.gz'];

it.skipIf(lack !== null).each(['parquet', 'ndjson', 'verify', 'replay'])(
  `what unpacks to gigabytes is read in less than ${MOST_MIB} MiB of memory: %s${skipped(lack)}`,
  async (how) => {
    const folder = await temporaryFolder();
    const bombs = join(folder, 'bombs');
    writeBombs(bombs);
    const commands: Readonly<Record<string, readonly string[]>> = {
      verify: ['archive', 'verify', bombs],
      replay: ['replay', bombs, '--config', writeConfig(folder), '--to', 'archive'],
    };
    const exports = ['export', bombs, '--out', join(folder, 'out'), '--format', how];
    const { code, stderr, peak } = await peakOf(commands[how] ?? exports);
    expect(peak).toBeLessThan(MOST_MIB);
    expect(code).toBe(how === 'verify' ? 4 : 3);
    if (how !== 'verify')
      for (const file of TOO_LONG)
        expect(stderr).toMatch(new RegExp(`the line is too long.*${file}:1|${file}:1: the line is too long`));
  },
);
