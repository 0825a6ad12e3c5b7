import { systemClock, type Clock } from '../core/clock.ts';
import { MillraceError } from '../core/errors.ts';
import type { NewEndpoint } from './endpoints.ts';
import type { Pipelines } from './events.ts';
import type { FaultOptions } from './faults.ts';
import { MADE_UP_TEAM } from './made-up-events.ts';
import { PROVIDERS } from './providers.ts';
import type { Name } from './seeded.ts';
import { speedClock } from './speed-clock.ts';

/** What stand-in to start. Every option has a default; the same seed gives the same data. */
export interface SandboxOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free one. */
  readonly port?: number;
  /** Default `made-up`. */
  readonly seed?: Name;
  /** Users that are there at the start. Default 100. */
  readonly users?: number;
  /** Default 3. */
  readonly mealsPerDay?: number;
  /** Days with data. Default 180. */
  readonly days?: number;
  /** First day with data, `YYYY-MM-DD`. Default 2026-01-01. */
  readonly since?: string;
  /** Every user is connected to all of these. Default: `made_up` and one more. */
  readonly providers?: readonly string[];
  /** `ready`: meals can be read at once. `after_pull`: only once a historical pull of the connection succeeded. */
  readonly data?: 'ready' | 'after_pull';
  /** How many times faster than the wall throttles, pulls, grace periods and retries run. Default 1. */
  readonly speed?: number;
  /** In place of `speed`. */
  readonly clock?: Clock;
  /** Milliseconds since the epoch, for signatures. Default: the wall. */
  readonly signingNow?: () => number;
  readonly teamId?: string;
  /** The team API key. Default: made from the seed. */
  readonly teamKey?: string;
  /** Default `x-service-api-key`. */
  readonly apiKeyHeader?: string;
  /** Management operations and pipelines are part of `scale` only. Default `scale`. */
  readonly plan?: 'scale' | 'launch';
  /** What is enabled for the team: lab report parsing (beta; default on), partial lab results (default off). */
  readonly features?: { readonly parsing?: boolean; readonly partialResults?: boolean };
  readonly webhooks?: readonly NewEndpoint[];
  readonly pipelines?: Pipelines;
  readonly faults?: FaultOptions;
  /** SQLite file that keeps what happens over restarts; made when it is missing. Default: all is forgotten. */
  readonly state?: string;
  /** A `daily.data.meal.created` event each time this much sandbox time has passed, milliseconds. Default: none. */
  readonly dailyEveryMs?: number;
}

export type ResolvedSandbox = ReturnType<typeof resolveSandbox>;

/**
 * Checks the options and fills in defaults.
 * @param resumedAt sandbox time at which an earlier run was left; the clock does not go back
 * @throws MillraceError usage
 */
export function resolveSandbox(options: SandboxOptions, resumedAt: number | null = null) {
  const { since = '2026-01-01', speed = 1, providers = null, clock } = options;
  const sinceMs = Date.parse(`${since}T00:00:00Z`);
  if (Number.isNaN(sinceMs)) throw new MillraceError('usage', `since ${since} is not a date`);
  if (!(speed > 0 && speed <= 1e6))
    throw new MillraceError('usage', `speed must be above 0 and at most 1000000`);
  for (const provider of providers ?? []) {
    if (!Object.hasOwn(PROVIDERS, provider)) {
      const known = Object.keys(PROVIDERS).join(', ');
      throw new MillraceError('usage', `provider ${provider} is not one of ${known}`);
    }
  }
  return {
    host: options.host ?? '127.0.0.1',
    port: whole('port', options.port ?? 0, 65_535),
    seed: options.seed ?? 'made-up',
    users: whole('users', options.users ?? 100, 10_000_000),
    mealsPerDay: whole('mealsPerDay', options.mealsPerDay ?? 3, 100_000),
    days: whole('days', options.days ?? 180, 36_500),
    sinceMs,
    providers,
    data: options.data ?? 'ready',
    clock: clock ?? speedClock(speed, systemClock, resumedAt ?? 0),
    signingNow: options.signingNow ?? Date.now,
    teamId: options.teamId ?? MADE_UP_TEAM,
    teamKey: options.teamKey,
    apiKeyHeader: options.apiKeyHeader ?? 'x-service-api-key',
    plan: options.plan ?? 'scale',
    features: { parsing: true, partialResults: false, ...options.features },
    webhooks: options.webhooks ?? [],
    pipelines: options.pipelines ?? null,
    faults: options.faults ?? {},
    dailyEveryMs: options.dailyEveryMs ?? 0,
  };
}

function whole(name: string, value: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= 0 && value <= most) return value;
  throw new MillraceError('usage', `${name} must be a whole number from 0 to ${most}`);
}
