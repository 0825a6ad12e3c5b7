import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { MAIN, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';

const NAME = 'MALLOC_MMAP_THRESHOLD_';
const lack = process.platform === 'linux' ? lacksProgram('env') : 'needs Linux';

/** Starts one with this in front, and returns what the process with its number has in its environment. */
async function settingOf(...before: string[]): Promise<string | undefined> {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, {
    sinks: { archive: { type: 'files', path: join(folder, 'archive') } },
  });
  const program = ['env', ...before, process.execPath, '--no-warnings', MAIN] as const;
  const receiver = await ReceiverProcess.start(config, { program: [...program] });
  const environment = readFileSync(`/proc/${receiver.pid}/environ`, 'utf8').split('\0');
  expect(readFileSync(`/proc/${receiver.pid}/cmdline`, 'utf8').split('\0')).toContain('--no-warnings');
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  return environment.find((line) => line.startsWith(`${NAME}=`));
}

test.skipIf(lack !== null)(
  `a receiver has memory of large bodies given back, unless the environment says how${skipped(lack)}`,
  async () => {
    expect(await settingOf('-u', NAME)).toBe(`${NAME}=262144`);
    expect(await settingOf(`${NAME}=1048576`)).toBe(`${NAME}=1048576`);
  },
);
