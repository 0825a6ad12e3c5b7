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

/** A file that has been read once for all that is asked of its modules. */
export class Model {
  readonly #read: object;

  private constructor(read: object) {
    this.#read = read;
  }

  /**
   * @param typed false leaves out the check of types, which takes seconds for long histories in a model that has been checked
   * @throws Error when it cannot be read, or its types do not fit
   */
  static async of(file: string, typed = true): Promise<Model> {
    const stages = typed ? [load, parse, typecheck] : [load, parse];
    const { outcome, text } = await quietly(stages, { input: file, verbosity: 1, backend: 'typescript' });
    if (!outcome.isRight()) throw new Error(`quint failed: ${text}`);
    return new Model(outcome.value as object);
  }

  /** Walks at random through the states of a module. */
  async simulate(options: {
    readonly main: string;
    readonly invariants: readonly string[];
    readonly witnesses?: readonly string[];
    readonly runs: number;
    readonly seed: number;
  }): Promise<Simulated> {
    const { main, invariants, witnesses = [], runs, seed } = options;
    const { outcome, text } = await this.#ask(runSimulator, {
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
    if (held !== outcome.isRight() || (!held && !text.includes('[violation]')))
      throw new Error(`quint failed: ${text}`);
    const broken = [...text.matchAll(/❌ (\w+)/g)].map(([, name]) => name ?? '');
    const witnessed = [...text.matchAll(/^(\w+) was witnessed in (\d+) trace/gm)].map(
      ([, name = '', count]) => [name, Number(count)] as const,
    );
    return { held, broken, witnessed: new Map(witnessed), text };
  }

  /** Runs the tests (`run` definitions) of a module; true when all of them pass. */
  async passes(main: string): Promise<{ ok: boolean; text: string }> {
    const { outcome, text } = await this.#ask(runTests, { main, verbosity: 2, maxSamples: 1, seed: 1n });
    return { ok: outcome.isRight() && /\b[1-9]\d* passing/.test(text), text };
  }

  #ask(stage: Stage, options: object): ReturnType<typeof quietly> {
    const { args } = this.#read as { args: object };
    return quietly([stage], { ...this.#read, ...options, args: { ...args, ...options } });
  }
}

/** @returns how the last stage ended, and what all have printed */
async function quietly(stages: readonly Stage[], input: object): Promise<{ outcome: Outcome; text: string }> {
  const lines: string[] = [];
  const { log } = console;
  console.log = (...words: unknown[]): void => void lines.push(words.join(' '));
  try {
    let outcome: Outcome = { value: input, isRight: () => true };
    for (const stage of stages) if (outcome.isRight()) outcome = await stage(outcome.value);
    if (!outcome.isRight()) lines.push(problemOf(outcome.value));
    return { outcome, text: stripVTControlCharacters(lines.join('\n')) };
  } finally {
    console.log = log;
  }
}

function problemOf(value: unknown): string {
  const { msg, stage } = value as { msg: string; stage: { errors: readonly { explanation: string }[] } };
  return [msg, ...stage.errors.map(({ explanation }) => explanation)].join('\n');
}
