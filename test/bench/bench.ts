/** What a bench has measured, and what it was meant to reach. */
export interface BenchResult {
  /** Everything measured; becomes the JSON line. Units are part of the names. */
  readonly figures: Readonly<Record<string, unknown>>;
  /** Rows of the table: what, how much. */
  readonly rows: readonly (readonly [what: string, figure: string])[];
  readonly targets: readonly Target[];
}

export interface Target {
  readonly name: string;
  readonly wanted: string;
  readonly measured: string;
  readonly met: boolean;
}

export interface BenchContext {
  /** One line of progress, to stderr. */
  note(line: string): void;
  /** Aborts on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

/** One `npm run bench -- NAME`. */
export interface Bench {
  readonly summary: string;
  /** Text for `--help`: the flags, one a line. */
  readonly help: string;
  /** @throws Error when nothing could be measured; a target that is missed is no error. */
  run(argv: readonly string[], context: BenchContext): Promise<BenchResult>;
}
