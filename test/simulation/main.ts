import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { single } from './job.ts';
import { simulate } from './run.ts';

const HELP = `Runs the receiver on a simulated disk, clock and network, among senders and an operator, with kills, power cuts
and failing disks; all of it is decided by the seed, and the same seed gives the same history.

  node test/simulation/main.ts [--first N,N…] [--seed N] [--histories M] [--minutes K] [--jobs J] [--defect NAME]
  node test/simulation/main.ts --seed N --length L --steps     shows one history

The seeds of --first come before those from --seed on. A seed that fails is shrunk to the fewest steps of the operator that still fail. With a defect the run ends at the first
seed that shows it. The last line has the totals: what was tried, and the seeds that failed. Exit code 1 when one has, 3 when a
process has ended.
`;

const { values } = parseArgs({
  options: {
    first: { type: 'string', default: '' },
    seed: { type: 'string', default: '1' },
    histories: { type: 'string', default: '100' },
    minutes: { type: 'string', default: 'Infinity' },
    jobs: { type: 'string', default: String(Math.min(2, availableParallelism())) },
    length: { type: 'string' },
    defect: { type: 'string' },
    steps: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else process.exitCode = await main();

async function main(): Promise<number> {
  if (values.defect !== undefined) process.env['SIMULATION_DEFECT'] = values.defect;
  const seed = Number(values.seed);
  const length = values.length === undefined ? undefined : Number(values.length);
  if (values.steps) {
    process.stdout.write(await single(seed, length));
    return 0;
  }
  const totals = await simulate({
    seed,
    first: values.first.split(',').filter(Boolean).map(Number),
    length,
    histories: Number(values.histories),
    minutes: Number(values.minutes),
    jobs: Number(values.jobs),
    isDefect: values.defect !== undefined,
  });
  process.stdout.write(`${JSON.stringify(totals)}\n`);
  if (totals.died.length > 0) return 3;
  return totals.failed.length === 0 ? 0 : 1;
}
