import { parseArgs } from 'node:util';
import { messageOf } from '../../src/core/errors.ts';
import type { RunOptions } from './campaign.ts';
import { CAMPAIGNS } from './registry.ts';
import { counted, run } from './run.ts';

const USAGE = `Usage: npm run campaign -- NAME [--cycles N] [--seed S] [--break]

${Object.entries(CAMPAIGNS)
  .map(
    ([name, { summary, breaks }]) => `  ${name.padEnd(14)} ${summary}\n${' '.repeat(17)}--break: ${breaks}`,
  )
  .join('\n')}

  --cycles N  faults under load (default 20)
  --seed S    the same random numbers again (default: another one each time)
  --break     break what is held, on purpose: the run has to fail

Progress goes to stderr, one line with the counts to stdout. Exit code 0 when all held, 1 when something was found or the
campaign cannot run here, 2 for wrong usage.
`;

const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort());

process.exitCode = await main(process.argv.slice(2));

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** @throws TypeError for a flag that is not known or not a number */
function parseOptions(argv: readonly string[]): RunOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: { cycles: { type: 'string' }, seed: { type: 'string' }, break: { type: 'boolean' } },
  });
  const cycles = Number(values.cycles ?? 20);
  const seed = Number(values.seed ?? Date.now() % 2 ** 31);
  if (!Number.isSafeInteger(cycles) || cycles < 1)
    throw new TypeError('--cycles must be a whole number above 0');
  if (!Number.isSafeInteger(seed) || seed < 0) throw new TypeError('--seed must be a whole number');
  return { cycles, seed, broken: values.break === true };
}

async function main([name = '', ...argv]: readonly string[]): Promise<number> {
  const campaign = Object.hasOwn(CAMPAIGNS, name) ? CAMPAIGNS[name] : undefined;
  if (campaign === undefined || argv.includes('--help')) {
    const asked = campaign !== undefined || name === '--help';
    (asked ? process.stdout : process.stderr).write(USAGE);
    return asked ? 0 : 2;
  }
  try {
    const options = parseOptions(argv);
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
  } catch (error) {
    note(`campaign ${name}: ${messageOf(error)}`);
    return error instanceof TypeError ? 2 : 1;
  }
}
