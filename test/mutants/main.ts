import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { seededRandom } from '../support/random.ts';
import { changesOf, type Change } from './changes.ts';

const USAGE = `Usage: npm run mutants -- [--seed N] [--count N] [--long]

Changes one small thing of src at a time, and runs the tests until one fails. A change that no test notices has survived.

  --seed N    which changes (default 1)
  --count N   how many (default 20)
  --long      runs the long lane instead of the quick one
`;
const ROOT = join(import.meta.dirname, '../..');
/** A third of the changes are of these files, the others of any other one. */
const WEIGHTED = /^src\/(?:journal|deliver|(?:privacy\/)?erase)\//;
const WEIGHT = 1 / 3;
/** What takes so many times as long as the tests do without a change hangs: the change is noticed. */
const PATIENCE = 3;

interface Mutant extends Change {
  readonly file: string;
  readonly source: string;
}

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const options = { seed: { type: 'string' }, count: { type: 'string' }, long: { type: 'boolean' } } as const;
  const { seed = '1', count = '20', long = false } = parseArgs({ args, options }).values;
  if (!/^\d+$/.test(seed) || !/^[1-9]\d*$/.test(count)) {
    process.stderr.write(USAGE);
    return 2;
  }
  const mutants = choose(Number(seed), Number(count));
  const tests = new Tests(long);
  await tests.begin();
  let killed = 0;
  for (const mutant of mutants) {
    const from = performance.now();
    const noticed = await tests.notice(mutant);
    if (noticed) killed += 1;
    const seconds = Math.round((performance.now() - from) / 1000);
    process.stdout.write(`${noticed ? 'killed  ' : 'SURVIVED'} ${described(mutant)} (${seconds} s)\n`);
  }
  const rate = Math.round((100 * killed) / mutants.length);
  process.stdout.write(`seed ${seed}: ${killed} of ${mutants.length} killed, ${rate} %\n`);
  return 0;
}

function choose(seed: number, count: number): Mutant[] {
  const random = seededRandom(seed);
  const all = globSync('src/**/*.ts', { cwd: ROOT, exclude: ['**/*.d.ts'] })
    .toSorted()
    .flatMap((file) => {
      const source = readFileSync(join(ROOT, file), 'utf8');
      return changesOf(source).map((change) => ({ ...change, file, source }));
    });
  const weighted = all.filter(({ file }) => WEIGHTED.test(file));
  const others = all.filter(({ file }) => !WEIGHTED.test(file));
  return Array.from({ length: count }, () => {
    const from = random() < WEIGHT ? weighted : others;
    return from.splice(Math.floor(random() * from.length), 1);
  }).flat();
}

/** The tree, with the same files until one is changed. It lies beside the tree: in it, its tests would be found. */
function linkedCopy(): string {
  const copy = mkdtempSync(join(dirname(ROOT), 'millrace-mutants-'));
  process.once('exit', () => rmSync(copy, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  execFileSync('cp', ['-al', `${ROOT}/.`, copy]);
  // What vitest keeps of a run would be written into the tree.
  for (const name of ['.git', 'node_modules/.vite'])
    rmSync(join(copy, name), { recursive: true, force: true });
  return copy;
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

/** The tests of one lane, in a copy of the tree. */
class Tests {
  readonly #copy = linkedCopy();
  readonly #env: NodeJS.ProcessEnv;
  /** Milliseconds. */
  #longest = 2 ** 31 - 1;

  constructor(isLong: boolean) {
    this.#env = { ...process.env, ...(isLong ? { MILLRACE_LONG: '1' } : {}) };
  }

  /** @throws when they fail without a change */
  async begin(): Promise<void> {
    const from = performance.now();
    if (await this.#fail('run')) throw new Error('The tests fail without a change.');
    this.#longest = PATIENCE * (performance.now() - from);
  }

  async notice(mutant: Mutant): Promise<boolean> {
    this.#put(mutant.file, changed(mutant));
    // Most are noticed by what imports the file; the others by what starts the program.
    const noticed = (await this.#fail('related', mutant.file, '--run')) || (await this.#fail('run'));
    this.#put(mutant.file, mutant.source);
    return noticed;
  }

  /** A new file, as the old one is also that of the tree. */
  #put(file: string, text: string): void {
    rmSync(join(this.#copy, file));
    writeFileSync(join(this.#copy, file), text);
  }

  async #fail(...args: readonly string[]): Promise<boolean> {
    const child = spawn('npx', ['vitest', ...args, '--bail', '1', '--passWithNoTests'], {
      cwd: this.#copy,
      env: this.#env,
      stdio: 'ignore',
      detached: true,
    });
    const end = (): void => void (child.pid && process.kill(-child.pid, 'SIGKILL'));
    const timer = setTimeout(end, this.#longest);
    const [code] = (await once(child, 'close')) as [number | null];
    clearTimeout(timer);
    return code !== 0;
  }
}
