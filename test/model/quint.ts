import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const QUINT = require.resolve('@informalsystems/quint/dist/src/cli.js');

export interface Simulated {
  /** True when no state broke an invariant. */
  readonly held: boolean;
  /** Names of the invariants that were broken. */
  readonly broken: readonly string[];
  /** How many of the runs came by each witness. */
  readonly witnessed: ReadonlyMap<string, number>;
  readonly text: string;
}

/** Walks at random through the states of a module. Rejects when the model cannot be read. */
export async function simulate(options: {
  readonly file: string;
  readonly main: string;
  readonly invariants: readonly string[];
  readonly witnesses?: readonly string[];
  readonly runs: number;
  readonly seed: number;
}): Promise<Simulated> {
  const { file, main, invariants, witnesses = [], runs, seed } = options;
  const flags = ['--max-steps', '40', '--max-samples', String(runs), '--seed', String(seed)];
  const looked = witnesses.length === 0 ? [] : ['--witnesses', ...witnesses];
  const { code, text } = await quint(
    'run',
    file,
    ...flags,
    '--main',
    main,
    '--verbosity',
    '1',
    '--invariants',
    ...invariants,
    ...looked,
  );
  const held = text.includes('[ok] No violation found');
  if (!held && !text.includes('[violation]')) throw new Error(`quint ended with ${code}: ${text}`);
  const broken = [...text.matchAll(/❌ (\w+)/g)].map(([, name]) => name ?? '');
  const witnessed = [...text.matchAll(/^(\w+) was witnessed in (\d+) trace/gm)].map(
    ([, name = '', count]) => [name, Number(count)] as const,
  );
  return { held, broken, witnessed: new Map(witnessed), text };
}

/** Runs the tests (`run` definitions) of a module; true when all of them pass. */
export async function passes(file: string, main: string): Promise<{ ok: boolean; text: string }> {
  const { code, text } = await quint('test', file, '--main', main, '--verbosity', '2', '--max-samples', '1');
  return { ok: code === 0 && /\b[1-9]\d* passing/.test(text), text };
}

function quint(...args: readonly string[]): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve) => {
    const settings = { maxBuffer: 1e8, env: { ...process.env, NO_COLOR: '1' } };
    const child = execFile(
      process.execPath,
      [QUINT, ...args, '--backend', 'typescript'],
      settings,
      (_error, stdout, stderr) => resolve({ code: child.exitCode, text: stdout + stderr }),
    );
  });
}
