import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { seededRandom } from '../support/random.ts';
import { changesOf, type Change } from './changes.ts';
import { Tests } from './tests.ts';

const USAGE = `Usage: npm run mutants -- [--seed N] [--count N] [--room NAME] [--long]

Changes one small thing of src at a time, and runs the tests until one fails. A change that no test notices has survived.

  --seed N    which changes (default 1)
  --count N   how many (default 20)
  --room NAME changes src/NAME only, and runs test/NAME only
  --long      runs the long lane instead of the quick one
`;
const ROOT = join(import.meta.dirname, '../..');
/** A third of the changes are of these files, the others of any other one. */
const WEIGHTED = /^src\/(?:journal|deliver|(?:privacy\/)?erase)\//;
const WEIGHT = 1 / 3;

interface Mutant extends Change {
  readonly file: string;
  readonly source: string;
}

const string = { type: 'string' } as const;
const options = { seed: string, count: string, room: string, long: { type: 'boolean' } } as const;
const { seed = '1', count = '20', room = null, long = false } = parseArgs({ options }).values;
if (/^\d+$/.test(seed) && /^[1-9]\d*$/.test(count)) {
  const mutants = choose(Number(seed), Number(count));
  const tests = new Tests(long, room);
  await tests.begin();
  let killed = 0;
  for (const mutant of mutants) {
    const from = performance.now();
    const outcome = await tests.try(mutant.file, mutant.source, changed(mutant));
    if (outcome !== 'SURVIVED') killed += 1;
    const seconds = Math.round((performance.now() - from) / 1000);
    process.stdout.write(`${outcome.padEnd(8)} ${described(mutant)} (${seconds} s)\n`);
  }
  const rate = Math.round((100 * killed) / mutants.length);
  process.stdout.write(`seed ${seed}: ${killed} of ${mutants.length} killed, ${rate} %\n`);
} else {
  process.stderr.write(USAGE);
  process.exitCode = 2;
}

function choose(first: number, howMany: number): Mutant[] {
  const random = seededRandom(first);
  const all = globSync(`src/${room ?? '**'}/**/*.ts`, { cwd: ROOT, exclude: ['**/*.d.ts'] })
    .toSorted()
    .flatMap((file) => {
      const source = readFileSync(join(ROOT, file), 'utf8');
      return changesOf(source).map((change) => ({ ...change, file, source }));
    });
  const weighted = all.filter(({ file }) => WEIGHTED.test(file));
  const others = room === null ? all.filter(({ file }) => !WEIGHTED.test(file)) : all;
  return Array.from({ length: howMany }, () => {
    const from = room === null && random() < WEIGHT ? weighted : others;
    return from.splice(Math.floor(random() * from.length), 1);
  }).flat();
}

function changed({ source, start, end, text }: Mutant): string {
  return source.slice(0, start) + text + source.slice(end);
}

function described(mutant: Mutant): string {
  const { file, source, start } = mutant;
  const line = source.slice(0, start).split('\n').length;
  const [before, after] = [source, changed(mutant)].map((text) => text.split('\n')[line - 1]?.trim());
  return `${file}:${line}  ${before}  →  ${after}`;
}
