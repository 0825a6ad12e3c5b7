import { systemClock, type Clock } from '../core/clock.ts';
import { MillraceError } from '../core/errors.ts';
import { isDay } from './check.ts';
import type { NewEndpoint } from './endpoints.ts';
import type { Pipelines } from './events.ts';
import type { FaultOptions } from './faults.ts';
import { MADE_UP_TEAM } from './made-up-events.ts';
import { providersOf } from './providers.ts';
import type { Name } from './seeded.ts';

const DEFAULTS = {
  host: '127.0.0.1',
  /** 0: any free one. */
  port: 0,
  seed: 'made-up' as Name,
  /** Number of seeded users. */
  users: 100,
  mealsPerDay: 3,
  /** Samples of each series on a day. */
  samplesPerDay: 4,
  /** Days with data. */
  days: 180,
  /** First day with data, `YYYY-MM-DD`. */
  since: '2026-01-01',
  /** Names of the providers; null: sixteen made-up ones. */
  providerNames: null as readonly string[] | null,
  /** Providers of every user; null: the first one and one of the others. */
  providers: null as readonly string[] | null,
  /** `ready`: meals can be read at once. `after_pull`: after a successful historical pull of the connection. */
  data: 'ready' as 'ready' | 'after_pull',
  /** Factor by which throttles, pulls, grace periods and retries are faster than real time. */
  speed: 1,
  /** The clock of signatures, milliseconds since the epoch. */
  signingNow: (): number => Date.now(),
  teamId: MADE_UP_TEAM,
  apiKeyHeader: 'x-service-api-key',
  /** Only `scale` has management operations and pipelines. */
  plan: 'scale' as 'scale' | 'launch',
  webhooks: [] as readonly NewEndpoint[],
  pipelines: null as Pipelines | null,
  faults: {} as FaultOptions,
  /** Values that are not documented, where a list may grow: statuses of orders, interpretations, providers. */
  unknownValues: false,
  /** Sandbox milliseconds between two `daily.data.meal.created` events; 0: none. */
  dailyEveryMs: 0,
};

/** Every option has a default; the same seed gives the same data. */
export type SandboxOptions = Readonly<Partial<typeof DEFAULTS>> & {
  /** Instead of `speed`. */
  readonly clock?: Clock;
  /** Features of the team: lab report parsing (beta; default on), partial lab results (default off). */
  readonly features?: { readonly parsing?: boolean; readonly partialResults?: boolean };
};

export type ResolvedSandbox = ReturnType<typeof resolveSandbox>;

/** Checks the options and fills in defaults. @throws MillraceError usage */
export function resolveSandbox(options: SandboxOptions) {
  const given = { ...DEFAULTS, ...options };
  const { since, speed, providers, providerNames, clock = speedClock(speed) } = given;
  const sinceMs = Date.parse(`${since}T00:00:00Z`);
  if (!isDay(since)) throw new MillraceError('usage', `since ${since} is not a date`);
  if (!(speed > 0 && speed <= 1e6))
    throw new MillraceError('usage', `speed must be above 0 and at most 1000000`);
  const throttles = providersOf(providerNames ?? undefined);
  const odd = [...throttles.keys()].find((name) => !/^[a-z0-9_]+$/.test(name));
  if (odd !== undefined)
    throw new MillraceError('usage', `provider "${odd}" is not made of lower-case letters, digits and _`);
  for (const provider of providers ?? []) {
    if (!throttles.has(provider)) {
      const known = [...throttles.keys()].join(', ');
      throw new MillraceError('usage', `provider ${provider} is not one of ${known}`);
    }
  }
  whole('port', given.port, 65_535);
  whole('users', given.users, 10_000_000);
  whole('mealsPerDay', given.mealsPerDay, 100_000);
  whole('samplesPerDay', given.samplesPerDay, 86_400);
  whole('days', given.days, 36_500);
  const features = { parsing: true, partialResults: false, ...options.features };
  return { ...given, sinceMs, features, clock, throttles };
}

function whole(name: string, value: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= 0 && value <= most) return;
  throw new MillraceError('usage', `${name} must be a whole number from 0 to ${most}`);
}

/** A clock that runs `speed` times as fast as another from now on. */
export function speedClock(speed: number, base: Clock = systemClock): Clock {
  const wall = base.now();
  const start = base.monotonic();
  const elapsed = (): number => (base.monotonic() - start) * speed;
  return {
    now: () => wall + elapsed(),
    monotonic: () => start + elapsed(),
    after: (ms, callback) => longAfter(base, ms / speed, callback),
  };
}

/** Longest timer of Node: 24.8 days. */
const LONGEST_MS = 2 ** 31 - 1;

function longAfter(clock: Clock, ms: number, callback: () => void): () => void {
  if (ms <= LONGEST_MS) return clock.after(ms, callback);
  let cancel = clock.after(LONGEST_MS, () => {
    cancel = longAfter(clock, ms - LONGEST_MS, callback);
  });
  return () => cancel();
}
