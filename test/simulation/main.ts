import { availableParallelism } from 'node:os';
import { runProgram } from '../support/flags.ts';
import { single } from './job.ts';
import { simulate } from './run.ts';

const USAGE = `Usage: node test/simulation/main.ts [flags]

Runs the receiver on a simulated disk, clock and network, among senders and an operator, with kills, power cuts
and failing disks; all of it is decided by the seed, and the same seed gives the same history. A seed that fails is shrunk to the
fewest steps of the operator that still fail. The last line has the totals: what was tried, and the seeds that failed. Exit code
1 when one has, 3 when a process has ended.
`;

const FLAGS = {
  seed: [1, 'of the first history; the others count on from it', 0],
  first: ['', 'seeds that come before those, as N,N,…'],
  histories: [100, 'how many'],
  minutes: [Infinity, 'ends after so many minutes'],
  jobs: [Math.min(2, availableParallelism()), 'processes'],
  length: [-1, 'steps of the operator; as each seed has it when left out', 0],
  defect: ['', 'a known defect of the program (hooks.ts); the run ends at the first seed that shows it'],
  steps: [false, 'shows the one history of --seed, step by step'],
} as const;

await runProgram(
  USAGE,
  FLAGS,
  process.argv.slice(2),
  async ({ first, length: given, defect, steps, ...run }) => {
    if (defect !== '') process.env['SIMULATION_DEFECT'] = defect;
    const length = given < 0 ? undefined : given;
    if (steps) {
      process.stdout.write(await single(run.seed, length));
      return 0;
    }
    const seeds = first.split(',').filter(Boolean).map(Number);
    const totals = await simulate({ ...run, first: seeds, length, isDefect: defect !== '' });
    process.stdout.write(`${JSON.stringify(totals)}\n`);
    if (totals.died.length > 0) return 3;
    return totals.failed.length === 0 ? 0 : 1;
  },
);
