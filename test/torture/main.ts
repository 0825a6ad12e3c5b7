import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lineOf, Run as Simulation, type Totals } from '../simulation/run.ts';
import build from '../support/build.ts';
import { Ledger } from './ledger.ts';
import { lacksRecorder } from './recorder.ts';
import { Run, type Options } from './run.ts';

const USAGE = `Usage: npm run torture -- [--seed N] [--histories H] [--states M] [--minutes K] [--jobs J] [--ledger FILE]
       npm run torture -- --history FOLDER [--only STATE] [--serve]

  --seed N          the first history's seed (default: another one each time); the others count on from it
  --histories H     first so many histories on a simulated machine (default 0; see test/simulation)
  --states M        ends when so many different states were tried (default 10000)
  --minutes K       ends after so many minutes, whichever comes first; the simulated histories have half of them
  --jobs J          processes (default 2)
  --ledger FILE     adds what was tried to this file, and continues behind what stands there: the numbers are for all of it
  --per-point P     states at each crash point, at most (default 12)
  --history FOLDER  tries the states of a history that a failure has left
  --only STATE      only this one, as the failure names it
  --serve           all recoveries are those of \`millrace serve\`, and not one in 1000

Progress goes to stderr. The last lines, on stdout, say what was tried and which seeds failed. Exit code 0 when all held, 1 when something was found or it
cannot run here, 2 for wrong usage.
`;

interface Settings extends Options {
  readonly histories: number;
  /** Null where none was given. */
  readonly ledger: string | null;
}

process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  let options: Settings;
  try {
    options = parseOptions(argv);
  } catch (error) {
    note(`${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  const lack = lacksRecorder();
  if (lack !== null) {
    note(`torture cannot run here: ${lack}`);
    return 1;
  }
  const ledger = new Ledger(options.ledger);
  const simulated = await simulate(options, ledger);
  const states = options.states - ledger.sum('states');
  if (states <= 0 && options.kept === undefined) {
    tell(simulated, ledger);
    return codeOf(simulated);
  }
  const clean = await build();
  const base = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'millrace-torture-'));
  try {
    const minutes = simulated === null ? options.minutes : options.minutes - simulated.seconds / 60;
    const seed = ledger.next('states') ?? options.seed;
    const onProgress = ledger.follow('states');
    const { code, line } = await new Run({ ...options, seed, states, minutes, onProgress }, base).end();
    tell(simulated, ledger);
    process.stdout.write(`${line}\n`);
    return codeOf(simulated) === 1 ? 1 : code;
  } finally {
    clean();
    // Histories that failed stay.
    if (readdirSync(base).every((name) => name.startsWith('job-')))
      rmSync(base, { recursive: true, force: true });
  }
}

/** Histories on a simulated machine; half of the time is for them. Null when none is wanted. */
async function simulate(options: Settings, ledger: Ledger): Promise<Totals | null> {
  const { minutes, jobs } = options;
  const histories = options.histories - ledger.sum('histories');
  if (histories <= 0) return null;
  const seed = ledger.next('histories') ?? options.seed;
  const onProgress = ledger.follow('histories');
  return new Simulation({
    seed,
    histories,
    minutes: minutes / 2,
    jobs,
    isDefect: false,
    onProgress,
  }).end();
}

function tell(simulated: Totals | null, ledger: Ledger): void {
  for (const line of ledger.lines()) process.stdout.write(`${line}\n`);
  if (simulated !== null) process.stdout.write(`${lineOf(simulated)}\n`);
}

function codeOf(simulated: Totals | null): number {
  return simulated !== null && simulated.failed.length > 0 ? 1 : 0;
}

/** @throws TypeError for a flag that is not known or not a number */
function parseOptions(argv: readonly string[]): Settings {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...argv],
    options: {
      seed: text,
      histories: text,
      states: text,
      minutes: text,
      jobs: text,
      'per-point': text,
      history: text,
      only: text,
      ledger: text,
      serve: { type: 'boolean' },
    },
  });
  const number = (
    name: 'seed' | 'histories' | 'states' | 'minutes' | 'jobs' | 'per-point',
    otherwise: number,
  ): number => {
    const value = Number(values[name] ?? otherwise);
    if (!Number.isFinite(value) || value < 0) throw new TypeError(`--${name} must be a number`);
    return value;
  };
  return {
    seed: number('seed', Date.now() % 2 ** 31),
    histories: number('histories', 0),
    states: number('states', 10_000),
    minutes: number('minutes', 24 * 60),
    jobs: number('jobs', 2),
    perPoint: number('per-point', 12),
    kept: values.history,
    only: values.only,
    ledger: values.ledger ?? null,
    served: values.serve === true ? 1 : 1000,
  };
}

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}
