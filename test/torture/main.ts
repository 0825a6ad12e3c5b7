import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import build from '../support/build.ts';
import { lacksRecorder } from './recorder.ts';
import { torture, type Options } from './run.ts';

const USAGE = `Usage: npm run torture -- [--seed N] [--states M] [--minutes K] [--jobs J] [--per-point P]
       npm run torture -- --history FOLDER [--only STATE]

  --seed N          the first history's seed (default: another one each time); the others count on from it
  --states M        ends when so many different states were tried (default 10000)
  --minutes K       ends after so many minutes, whichever comes first
  --jobs J          processes (default 2)
  --per-point P     states at each crash point, at most (default 12)
  --history FOLDER  tries the states of a history that a failure has left
  --only STATE      only this one, as the failure names it

Progress goes to stderr. The last line, on stdout, says what was tried and which seeds failed. Exit code 0 when all held, 1 when something was found or it
cannot run here, 2 for wrong usage.
`;

process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  let options: Options;
  try {
    options = parseOptions(argv);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  const lack = lacksRecorder();
  if (lack !== null) {
    process.stderr.write(`torture cannot run here: ${lack}\n`);
    return 1;
  }
  const clean = await build();
  const base = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'millrace-torture-'));
  try {
    const { code, line } = await torture(options, base);
    process.stdout.write(`${line}\n`);
    return code;
  } finally {
    clean();
    // Histories that failed stay.
    if (readdirSync(base).every((name) => name.startsWith('job-')))
      rmSync(base, { recursive: true, force: true });
  }
}

/** @throws TypeError for a flag that is not known or not a number */
function parseOptions(argv: readonly string[]): Options {
  const text = { type: 'string' } as const;
  const numbers = { seed: text, states: text, minutes: text, jobs: text, 'per-point': text };
  const options = { ...numbers, history: text, only: text } as const;
  const { values } = parseArgs({ args: [...argv], options });
  const number = (name: keyof typeof numbers, otherwise: number): number => {
    const value = Number(values[name] ?? otherwise);
    if (!Number.isFinite(value) || value < 0) throw new TypeError(`--${name} must be a number`);
    return value;
  };
  return {
    seed: number('seed', Date.now() % 2 ** 31),
    states: number('states', 10_000),
    minutes: number('minutes', 24 * 60),
    jobs: number('jobs', 2),
    perPoint: number('per-point', 12),
    kept: values.history,
    only: values.only,
  };
}
