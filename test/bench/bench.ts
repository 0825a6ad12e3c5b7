import type { AnyFlags, Flags } from '../support/flags.ts';
import type { Figure } from './figures.ts';

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
  readonly flags: AnyFlags;
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
