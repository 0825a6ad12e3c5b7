import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import build from '../support/build.ts';
import { runProgram } from '../support/flags.ts';
import { lacksRecorder } from './recorder.ts';
import { torture } from './run.ts';

const USAGE = `Usage: npm run torture -- [flags]

Tries the states that a crash may leave of the disk, history after history (README.md). Progress goes to stderr. The last
line, on stdout, says what was tried and which seeds failed. Exit code 0 when all held, 1 when something was found or it
cannot run here, 2 for wrong usage.
`;

const FLAGS = {
  seed: [0, 'of the first history; the others count on from it; 0: another one each time', 0],
  states: [10_000, 'ends when so many different states were tried'],
  minutes: [24 * 60, 'ends after so many minutes, if that is earlier'],
  jobs: [2, 'processes'],
  'per-point': [12, 'states at each crash point, at most'],
  history: ['', 'tries the states of a history that a failure has left in this folder'],
  only: ['', 'only this state of it, as the failure names it'],
} as const;

await runProgram(USAGE, FLAGS, process.argv.slice(2), async ({ seed, history, only, ...limits }) => {
  const lack = lacksRecorder();
  if (lack !== null) {
    process.stderr.write(`torture cannot run here: ${lack}\n`);
    return 1;
  }
  const clean = await build();
  const base = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'millrace-torture-'));
  try {
    const { 'per-point': perPoint, ...rest } = limits;
    const kept = { kept: history || undefined, only: only || undefined };
    const { code, line } = await torture(
      { seed: seed || Date.now() % 2 ** 31, perPoint, ...rest, ...kept },
      base,
    );
    process.stdout.write(`${line}\n`);
    return code;
  } finally {
    clean();
    // Histories that failed stay.
    if (readdirSync(base).every((name) => name.startsWith('job-')))
      rmSync(base, { recursive: true, force: true });
  }
});
