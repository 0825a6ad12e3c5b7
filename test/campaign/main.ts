import { runProgram } from '../support/flags.ts';
import { CAMPAIGNS } from './registry.ts';
import { counted, run } from './run.ts';

const USAGE = `Usage: npm run campaign -- NAME [flags]

${Object.entries(CAMPAIGNS)
  .map(
    ([name, { summary, breaks }]) => `  ${name.padEnd(14)} ${summary}\n${' '.repeat(17)}--break: ${breaks}`,
  )
  .join('\n')}

Progress goes to stderr, one line with the counts to stdout. Exit code 0 when all held, 1 when something was found or the
campaign cannot run here, 2 for wrong usage.
`;

const FLAGS = {
  cycles: [20, 'faults under load'],
  seed: [0, 'the same random numbers again; 0: another one each time', 0],
  break: [false, 'break what is held, on purpose: the run has to fail'],
} as const;

const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort());

const [name = '', ...argv] = process.argv.slice(2);
await runProgram(USAGE, FLAGS, name.startsWith('-') ? [name] : argv, async (flags) => {
  const campaign = Object.hasOwn(CAMPAIGNS, name) ? CAMPAIGNS[name] : undefined;
  if (campaign === undefined) throw new TypeError(`there is no campaign ${name}`);
  const options = { ...flags, seed: flags.seed || Date.now() % 2 ** 31, broken: flags.break };
  const lack = campaign.lacks(options.broken);
  if (lack !== null) {
    note(`campaign ${name} cannot run here: ${lack}`);
    return 1;
  }
  const tally = await run(campaign, options, { note, signal: stopping.signal });
  for (const { seed, cycles } of tally.failures)
    note(`failed: npm run campaign -- ${name} --seed ${seed} --cycles ${cycles}`);
  process.stdout.write(`${name}: ${counted(tally, options.cycles)}; seed ${options.seed}\n`);
  return tally.failures.length === 0 && tally.cycles === options.cycles ? 0 : 1;
});

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}
