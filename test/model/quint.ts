import { createRequire } from 'node:module';
import { stripVTControlCharacters } from 'node:util';

const require = createRequire(import.meta.url);

/** What its commands are made of, one after the other. Each process of the command would first compile all of Quint. */
const { load, parse, typecheck, runSimulator, runTests } =
  require('@informalsystems/quint/dist/src/cliCommands.js') as Record<
    'load' | 'parse' | 'typecheck' | 'runSimulator' | 'runTests',
    Stage
  >;

type Stage = (input: unknown) => Promise<Outcome>;

/** Quint's `Either`. */
interface Outcome {
  readonly value: unknown;
  isRight(): boolean;
}

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
  const { ok, text } = await quint(runSimulator, {
    input: file,
    main,
    init: 'init',
    step: 'step',
    invariant: 'true',
    invariants,
    witnesses,
    maxSteps: 40,
    maxSamples: runs,
    seed: BigInt(seed),
    verbosity: 1,
  });
  const held = text.includes('[ok] No violation found');
  if (held !== ok || (!held && !text.includes('[violation]'))) throw new Error(`quint failed: ${text}`);
  const broken = [...text.matchAll(/❌ (\w+)/g)].map(([, name]) => name ?? '');
  const witnessed = [...text.matchAll(/^(\w+) was witnessed in (\d+) trace/gm)].map(
    ([, name = '', count]) => [name, Number(count)] as const,
  );
  return { held, broken, witnessed: new Map(witnessed), text };
}

/** Runs the tests (`run` definitions) of a module; true when all of them pass. */
export async function passes(file: string, main: string): Promise<{ ok: boolean; text: string }> {
  const args = { input: file, main, verbosity: 2, maxSamples: 1, seed: 1n };
  const { ok, text } = await quint(runTests, args);
  return { ok: ok && /\b[1-9]\d* passing/.test(text), text };
}

/** @returns what it has printed, and whether all its stages came to their end */
async function quint(last: Stage, args: object): Promise<{ ok: boolean; text: string }> {
  const lines: string[] = [];
  const { log } = console;
  console.log = (...words: unknown[]): void => void lines.push(words.join(' '));
  try {
    let outcome = await load({ ...args, backend: 'typescript' });
    for (const stage of [parse, typecheck, last]) if (outcome.isRight()) outcome = await stage(outcome.value);
    if (!outcome.isRight()) lines.push(problemOf(outcome.value));
    return { ok: outcome.isRight(), text: stripVTControlCharacters(lines.join('\n')) };
  } finally {
    console.log = log;
  }
}

function problemOf(value: unknown): string {
  const { msg, stage } = value as { msg: string; stage: { errors: readonly { explanation: string }[] } };
  return [msg, ...stage.errors.map(({ explanation }) => explanation)].join('\n');
}
