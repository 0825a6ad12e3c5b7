import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/** What takes so many times as long as all tests do without a change hangs. */
const PATIENCE = 3;

/** How a change was noticed, or that it was not. */
export type Outcome = 'killed' | 'hangs' | 'SURVIVED';

/** The tests of one lane, in a copy of the tree. */
export class Tests {
  readonly #copy = linkedCopy();
  readonly #env: NodeJS.ProcessEnv;
  readonly #only: readonly string[];
  /** Milliseconds. */
  #longest = 2 ** 31 - 1;

  constructor(isLong: boolean, room: string | null) {
    this.#only = room === null ? [] : [`test/${room}/`];
    this.#env = { ...process.env, ...(isLong ? { MILLRACE_LONG: '1' } : {}) };
  }

  /** @throws when they fail without a change */
  async begin(): Promise<void> {
    const from = performance.now();
    if ((await this.#run('run', ...this.#only)) !== 'SURVIVED')
      throw new Error('The tests fail without a change.');
    this.#longest = PATIENCE * (performance.now() - from);
  }

  async try(file: string, source: string, changed: string): Promise<Outcome> {
    this.#put(file, changed);
    // Most are noticed by what imports the file; the others by what starts the program.
    const related = this.#only.length > 0 ? 'SURVIVED' : await this.#run('related', file, '--run');
    const outcome = related === 'SURVIVED' ? await this.#run('run', ...this.#only) : related;
    this.#put(file, source);
    return outcome;
  }

  /** A new file, as the old one is also that of the tree. */
  #put(file: string, text: string): void {
    rmSync(join(this.#copy, file));
    writeFileSync(join(this.#copy, file), text);
  }

  async #run(...args: readonly string[]): Promise<Outcome> {
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
    if (code === 0) return 'SURVIVED';
    return code === null ? 'hangs' : 'killed';
  }
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
