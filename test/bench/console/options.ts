import { parseArgs } from 'node:util';

export interface ConsoleOptions {
  /** Pairs of stretches as fast as events are answered, one with the console and one without. */
  readonly rounds: number;
  /** Seconds of the steady load; every other two of them are watched. */
  readonly seconds: number;
  /** Events a second of the steady load. */
  readonly rate: number;
  /** Events of one stretch as fast as they are answered. */
  readonly perRound: number;
  readonly connections: number;
  /** Consoles, and as many Prometheus, that watch at a time. What they cost is divided by their number. */
  readonly watchers: number;
}

export const HELP = `Flags:
  --seconds N       length of the steady load; every other two seconds are watched (default 80)
  --rate N          events a second of the steady load (default 2000)
  --rounds N        pairs of stretches as fast as it goes, one watched and one not (default 10)
  --per-round N     events of such a stretch (default 40000)
  --connections N   keep-alive connections of the load generator (default 64)
  --watchers N      consoles, and as many Prometheus, that watch at a time (default 10)
`;

/** @throws TypeError for a flag that is not known or not a number */
export function parseOptions(argv: readonly string[]): ConsoleOptions {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rounds: text,
      seconds: text,
      rate: text,
      'per-round': text,
      connections: text,
      watchers: text,
    },
  });
  const number = (name: keyof typeof values, otherwise: number): number => {
    const value = Number(values[name] ?? otherwise);
    if (Number.isSafeInteger(value) && value > 0) return value;
    throw new TypeError(`--${name} must be a whole number above 0`);
  };
  return {
    rounds: number('rounds', 10),
    seconds: number('seconds', 80),
    rate: number('rate', 2000),
    perRound: number('per-round', 40_000),
    connections: number('connections', 64),
    watchers: number('watchers', 10),
  };
}
