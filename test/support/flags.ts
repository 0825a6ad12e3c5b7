import { parseArgs } from 'node:util';

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

export type AnyFlags = Readonly<Record<string, Flag>>;

/** What a run was asked for. */
export type Flags<F extends AnyFlags> = {
  readonly [Name in keyof F]: Widened<F[Name][0]>;
};

/** Text for `--help`: the flags, one a line. */
export function helpOf(flags: AnyFlags): string {
  const lines = Object.entries(flags).map(([name, [otherwise, help, limit]]): [string, string] => {
    const value = Array.isArray(limit) ? limit.join('|') : typeof otherwise === 'number' ? 'N' : 'VALUE';
    const shown = typeof otherwise === 'boolean' || String(otherwise) === '' ? '' : ` (${String(otherwise)})`;
    return [typeof otherwise === 'boolean' ? name : `${name} ${value}`, `${help}${shown}`];
  });
  const width = Math.max(...lines.map(([flag]) => flag.length));
  return `Flags:\n${lines.map(([flag, help]) => `  --${flag.padEnd(width)}  ${help}\n`).join('')}`;
}

/** @throws TypeError for a flag that is not known or has a value that it cannot have */
export function flagsOf<F extends AnyFlags>(flags: F, argv: readonly string[]): Flags<F> {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, [otherwise]]) => {
      const type = typeof otherwise === 'boolean' ? ('boolean' as const) : ('string' as const);
      return [name, { type, multiple: typeof otherwise === 'object' }];
    }),
  );
  const { values } = parseArgs({ args: [...argv], options });
  return Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [name, valueOf(name, flag, values[name])]),
  ) as Flags<F>;
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

/**
 * Runs a program of the tests by its command line: `--help` prints what it is for, and wrong usage ends it with 2.
 * @param run gives the exit code
 */
export async function runProgram<const F extends AnyFlags>(
  usage: string,
  flags: F,
  argv: readonly string[],
  run: (flags: Flags<F>) => Promise<number>,
): Promise<void> {
  const help = `${usage}\n${helpOf(flags)}`;
  if (argv.includes('--help') || argv.includes('-h')) return void process.stdout.write(help);
  try {
    process.exitCode = await run(flagsOf(flags, argv));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    process.stderr.write(`${error.message}\n\n${help}`);
    process.exitCode = 2;
  }
}
