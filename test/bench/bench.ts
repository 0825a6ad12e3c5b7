import { parseArgs } from 'node:util';
import type { Figure } from './figures.ts';

/**
 * A flag: what it is when it is not given, which says what kind of value it takes, and what `--help` says of it. A list may be
 * given several times. Then the least number (1 when left out), or the texts that it can be.
 */
export type Flag = readonly [
  otherwise: number | string | boolean | readonly string[],
  help: string,
  limit?: number | readonly string[],
];

type Widened<T> = T extends number
  ? number
  : T extends string
    ? string
    : T extends boolean
      ? boolean
      : string[];

/** What a run was asked for. */
export type Flags<F extends Readonly<Record<string, Flag>>> = {
  readonly [Name in keyof F]: Widened<F[Name][0]>;
};

export interface BenchContext {
  /** One line of progress, to stderr. */
  note(line: string): void;
  /** Aborts on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  /** Of this run, in `--folder` where a bench has that flag; removed at its end. */
  readonly folder: string;
  /** Stops something at the end of the run; the last one begins. */
  atEnd(stop: () => unknown): void;
}

/** One `npm run bench -- NAME`. */
export interface Bench {
  readonly summary: string;
  readonly flags: Readonly<Record<string, Flag>>;
  /** @throws Error when nothing could be measured; a target that is missed is no error. */
  run(flags: Flags<Bench['flags']>, context: BenchContext): Promise<readonly Figure[]>;
}

/** A bench whose `run` gets its flags with their types. */
export function bench<const F extends Bench['flags']>(
  summary: string,
  flags: F,
  run: (flags: Flags<F>, context: BenchContext) => Promise<readonly Figure[]>,
): Bench {
  return { summary, flags, run };
}

export const FOLDER = ['', 'make the temporary folder here'] as const;
export const MAIN_FLAG = ['', 'measure another program: a main.js or a src/main.ts'] as const;
export const ROUNDS = [5, 'rounds, each with every contender once'] as const;

/** Text for `--help`: the flags, one a line. */
export function helpOf({ flags }: Bench): string {
  const lines = Object.entries(flags).map(([name, [otherwise, help, limit]]): [string, string] => {
    const value = Array.isArray(limit) ? limit.join('|') : typeof otherwise === 'number' ? 'N' : 'VALUE';
    const shown = typeof otherwise === 'boolean' || String(otherwise) === '' ? '' : ` (${String(otherwise)})`;
    return [typeof otherwise === 'boolean' ? name : `${name} ${value}`, `${help}${shown}`];
  });
  const width = Math.max(...lines.map(([flag]) => flag.length));
  return `Flags:\n${lines.map(([flag, help]) => `  --${flag.padEnd(width)}  ${help}\n`).join('')}`;
}

/** @throws TypeError for a flag that is not known or has a value that it cannot have */
export function flagsOf({ flags }: Bench, argv: readonly string[]): Flags<Bench['flags']> {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, [otherwise]]) => {
      const type = typeof otherwise === 'boolean' ? ('boolean' as const) : ('string' as const);
      return [name, { type, multiple: typeof otherwise === 'object' }];
    }),
  );
  const { values } = parseArgs({ args: [...argv], options });
  return Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [name, valueOf(name, flag, values[name])]),
  ) as Flags<Bench['flags']>;
}

function valueOf(name: string, [otherwise, , limit]: Flag, given: unknown): unknown {
  if (given === undefined) return otherwise;
  if (typeof otherwise === 'number') {
    const [value, least] = [Number(given), Number(limit ?? 1)];
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw new TypeError(`--${name} must be a whole number, ${least} or more`);
  }
  if (Array.isArray(limit) && [given].flat().some((one) => !limit.includes(one)))
    throw new TypeError(`--${name} must be one of ${limit.join(', ')}`);
  return given;
}
