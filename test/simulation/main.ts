import { parseArgs } from 'node:util';
import type { Outcome } from './history.ts';

const HELP = `Runs the receiver on a simulated disk, clock and network, among senders and an operator, with kills, power cuts
and failing disks; all of it is decided by the seed, and the same seed gives the same history.

  node test/simulation/main.ts [--seed N] [--histories M] [--minutes K] [--defect NAME]
  node test/simulation/main.ts --seed N --length L --steps     shows one history

A seed that fails is shrunk to the fewest steps of the operator that still fail. Exit code 1 when one has failed.
`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    histories: { type: 'string', default: '100' },
    minutes: { type: 'string', default: 'Infinity' },
    length: { type: 'string', default: '12' },
    defect: { type: 'string' },
    steps: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else await main();

async function main(): Promise<void> {
  if (values.defect !== undefined) process.env['SIMULATION_DEFECT'] = values.defect;
  await import('./hooks.ts');
  const { runHistory } = await import('./history.ts');
  // Thrown into code of a process that is gone; nobody waits for it.
  process.on('unhandledRejection', (error) => {
    if (!(error instanceof Error && error.name === 'Gone')) throw error;
  });
  const first = Number(values.seed);
  const length = Number(values.length);
  if (values.steps) return show(await runHistory(first, length));
  const started = Date.now();
  const total = { histories: 0, events: 0, kills: 0, injected: 0, failed: 0 };
  for (let at = 0; at < Number(values.histories); at += 1) {
    const outcome = await runHistory(first + at, length);
    total.histories += 1;
    for (const key of ['events', 'kills', 'injected'] as const) total[key] += outcome[key];
    if (outcome.faults.length > 0) {
      total.failed += 1;
      show(values.defect === undefined ? await shrunk(outcome, length, runHistory) : outcome);
      // One shows that a defect is found.
      if (values.defect !== undefined) break;
    }
    if (Date.now() - started > Number(values.minutes) * 60_000) break;
  }
  process.stdout.write(
    `${JSON.stringify({ ...total, seed: first, seconds: (Date.now() - started) / 1000 })}\n`,
  );
  process.exitCode = total.failed === 0 ? 0 : 1;
}

/** The shortest history of the same seed that fails: its steps are the same, and it is calm earlier. */
async function shrunk(
  outcome: Outcome,
  length: number,
  run: (seed: number, length: number) => Promise<Outcome>,
): Promise<Outcome> {
  for (let shorter = 0; shorter < length; shorter += 1) {
    const again = await run(outcome.seed, shorter);
    if (again.faults.length > 0) return again;
  }
  return outcome;
}

function show({ steps, faults, ...rest }: Outcome): void {
  const text = faults.length === 0 ? ['nothing is wrong'] : faults;
  process.stdout.write(`${[...steps, ...text, JSON.stringify(rest)].join('\n')}\n`);
}
