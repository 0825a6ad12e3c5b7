const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** The rate of bulk triggers of a provider: so many connections each time. */
export interface Throttle {
  readonly connections: number;
  /** Milliseconds of sandbox time. */
  readonly everyMs: number;
}

export const USUAL: Throttle = { connections: 8, everyMs: MINUTE };
/** Limits connections at a time, not a rate: each takes half a second. */
const AT_A_TIME: Throttle = { connections: 250, everyMs: SECOND / 2 };

/** The sixteen made-up providers of the bulk trigger, with the documented rates. */
const MADE_UP: Readonly<Record<string, Throttle>> = {
  made_up: USUAL,
  made_up_slow: { connections: 2, everyMs: MINUTE },
  made_up_bulk_a: AT_A_TIME,
  made_up_bulk_b: AT_A_TIME,
  made_up_slowest: { connections: 1, everyMs: 15 * MINUTE },
  made_up_batch: { connections: 150, everyMs: 5 * MINUTE },
  ...Object.fromEntries([7, 8, 9, 10, 11, 12, 13, 14, 15, 16].map((n) => [`made_up_${n}`, USUAL])),
};

/** The providers with their rates. Names that are given have the rates of the made-up ones in the same order. */
export function providersOf(names: readonly string[] = Object.keys(MADE_UP)): ReadonlyMap<string, Throttle> {
  const rates = Object.values(MADE_UP);
  return new Map(names.map((name, n) => [name, MADE_UP[name] ?? rates[n] ?? USUAL]));
}
