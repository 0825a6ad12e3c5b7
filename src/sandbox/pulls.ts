import { pulledKey, RESOURCES } from './health-data.ts';
import { DAY_MS } from './made-up-health.ts';
import type { Events } from './events.ts';
import type { ResolvedSandbox } from './options.ts';
import { randomOf, uuidOf } from './seeded.ts';
import type { Timers } from './timers.ts';
import type { Teams } from './teams.ts';
import { MillraceError } from '../core/errors.ts';
import { isFromBefore, type User, type Users } from './users.ts';

/**
 * Modes of a pull: `scheduled` → `in_progress` → `success`, or `failure`, or `retrying` → `in_progress` …; connections
 * older than `retrying` show `in_progress` instead.
 */
type PullMode = 'scheduled' | 'in_progress' | 'retrying' | 'success' | 'failure';

interface Pull {
  readonly user: User;
  readonly provider: string;
  readonly resource: string;
  readonly range: Range;
  mode: PullMode;
  error: { readonly type: string; readonly message: string } | null;
  attempt: number;
  readonly times: { scheduled_at: string; started_at: string | null; ended_at: string | null };
}

/** Milliseconds since the epoch; the end is exclusive. */
interface Range {
  readonly startMs: number;
  readonly endMs: number;
}

interface PullsOptions {
  readonly teams: Teams;
  readonly timers: Timers;
  readonly events: Events;
  readonly users: Users;
  readonly options: ResolvedSandbox;
}

/** Of no provider. */
const NOT_PULLED = ['workout_stream'] as const;

const SECOND = 1000;
/** Sandbox milliseconds of each step. */
const STEPS = {
  scheduled: SECOND,
  perPull: 5 * SECOND,
  perDay: 20,
  retrying: 60 * SECOND,
  hour: 3600 * SECOND,
};
const RETRIES = 2;
const RETRYING_SINCE = Date.parse('2025-05-10T00:00:00Z');

type Fate = 'failing' | 'retrying' | 'left out' | 'unpulled' | 'lucky';

/** Historical pulls, one for each resource of a connection. */
export class Pulls {
  readonly #world: PullsOptions;
  /** By connection. */
  readonly #pulls = new Map<string, readonly Pull[]>();
  /** Fates of unlucky seeded users, by index. */
  readonly #fates: ReadonlyMap<number, Fate>;

  constructor(world: PullsOptions) {
    this.#world = world;
    this.#fates = fatesOf(world.options);
    world.users.onDeleted((user) => this.#endAll(user));
    world.users.onErased((user) => {
      for (const provider of user.sources) this.#pulls.delete(keyOf(user, provider));
    });
  }

  fateOf(user: User): Fate {
    return this.#fates.get(user.index) ?? 'lucky';
  }

  /** Starts the pulls; running ones are replaced. */
  start(user: User, provider: string): void {
    const fate = this.fateOf(user);
    if (fate === 'left out') return;
    const range = this.rangeOf(user, provider);
    const times = { scheduled_at: this.#world.timers.stamp(), started_at: null, ended_at: null };
    const pulls = RESOURCES.filter((resource) => fate !== 'unpulled' || resource !== 'meal').map(
      (resource): Pull => ({
        user,
        provider,
        resource,
        range,
        mode: 'scheduled',
        error: null,
        attempt: 1,
        times: { ...times },
      }),
    );
    this.#pulls.set(keyOf(user, provider), pulls);
    for (const pull of pulls) this.#after(STEPS.scheduled, pull, () => this.#run(pull));
  }

  /** The pulls of a user by provider, in the form of answers; null without any. */
  statusOf(user: User, provider?: string): object | null {
    const status: Record<string, object> = {};
    for (const name of user.sources) {
      const pulls = this.#pulls.get(keyOf(user, name));
      if (pulls === undefined || (provider !== undefined && provider !== name)) continue;
      const missing = RESOURCES.filter((resource) => !pulls.some((pull) => pull.resource === resource));
      status[name] = {
        pulled: Object.fromEntries(pulls.map((pull) => [pull.resource, this.#json(pull)])),
        not_pulled: [...missing, ...NOT_PULLED],
      };
    }
    return Object.keys(status).length === 0 ? null : status;
  }

  #run(pull: Pull): void {
    pull.mode = 'in_progress';
    pull.times.started_at ??= this.#world.timers.stamp();
    this.#after(STEPS.perPull + STEPS.perDay * daysIn(pull.range), pull, () => this.#end(pull));
  }

  /** Only pulls of meals can fail, so that others of the connection succeed. */
  #end(pull: Pull): void {
    const fate = pull.resource === 'meal' ? this.fateOf(pull.user) : 'lucky';
    if (fate === 'failing') {
      pull.mode = 'failure';
      pull.times.ended_at = this.#world.timers.stamp();
      pull.error = { type: 'provider_permission', message: 'The made-up provider refused permanently' };
      return;
    }
    if (fate === 'retrying' && pull.attempt <= RETRIES) {
      pull.attempt += 1;
      pull.error = { type: 'provider_timeout', message: 'The made-up provider did not answer' };
      const own = pull.user.connections.filter(({ provider }) => provider === pull.provider);
      if (own.some(({ createdAt }) => Date.parse(createdAt) >= RETRYING_SINCE)) pull.mode = 'retrying';
      this.#after(STEPS.retrying, pull, () => this.#run(pull));
      return;
    }
    pull.mode = 'success';
    pull.times.ended_at = this.#world.timers.stamp();
    pull.error = null;
    pull.user.pulled.add(pulledKey(pull.provider, pull.resource));
    this.#announce(pull);
    this.#repeat(pull);
  }

  #announce(pull: Pull): void {
    const { start, end } = this.#bounds(pull);
    this.#world.events.emit(pull.user, `historical.data.${pull.resource}.created`, {
      user_id: pull.user.id,
      start_date: start,
      end_date: end,
      provider: pull.provider,
      is_final: true,
    });
  }

  /** A completion can be sent two to five times within an hour, each time with a new id. */
  #repeat(pull: Pull): void {
    const random = randomOf(
      this.#world.options.seed,
      'completion',
      pull.user.id,
      pull.provider,
      pull.resource,
    );
    const times = random() < 0.7 ? 1 : 2 + Math.floor(random() * 4);
    for (let again = 1; again < times; again += 1) {
      this.#after(random() * STEPS.hour, pull, () => this.#announce(pull));
    }
  }

  /** Without effect once a newer pull has replaced this one, or the connection is gone. */
  #after(ms: number, pull: Pull, step: () => void): void {
    this.#world.timers.after(ms, () => {
      const current = this.#pulls.get(keyOf(pull.user, pull.provider));
      const connected = pull.user.connections.some(({ provider }) => provider === pull.provider);
      if (current?.includes(pull) === true && connected) step();
    });
  }

  #json(pull: Pull): object {
    const { user, provider, resource, mode, error, range, times } = pull;
    const { sinceMs, mealsPerDay, samplesPerDay } = this.#world.options;
    const { start, end } = this.#bounds(pull);
    const days = daysIn({ ...range, startMs: Math.max(range.startMs, sinceMs) });
    const hasData = mode === 'success' && (resource === 'meal' ? mealsPerDay : samplesPerDay) > 0;
    return {
      status: mode,
      range_start: start,
      range_end: end,
      days_with_data: hasData ? days : 0,
      error_details: error,
      timeline: times,
      release: 'made-up',
      trace_id: uuidOf('trace', user.id, provider, resource),
    };
  }

  #bounds({ range: { startMs, endMs } }: Pull): { start: string; end: string } {
    const { timers } = this.#world;
    return { start: timers.stamp(startMs), end: timers.stamp(Math.max(startMs, endMs - SECOND)) };
  }

  /** What a pull brings: the days that the team prefers, inside of the ingestion bounds of the user. */
  rangeOf({ teamId, bounds }: User, provider: string): Range {
    const { options, teams } = this.#world;
    const { provider_specific: own, historical_days_to_pull: usual } = teams.get(teamId).pullPreferences;
    const days = own?.[provider]?.historical_days_to_pull ?? usual ?? options.days;
    const dataEndMs = options.sinceMs + options.days * DAY_MS;
    const { ingestion_start: first, ingestion_end: last } = bounds;
    const endMs = Math.min(dataEndMs, last === null ? Infinity : Date.parse(last) + DAY_MS);
    const startMs = Math.max(dataEndMs - days * DAY_MS, first === null ? -Infinity : Date.parse(first));
    return { startMs: Math.min(startMs, endMs), endMs };
  }

  /** A deletion ends the pulls that have not ended, and what they would do later. */
  #endAll(user: User): void {
    const error = { type: 'connection_deregistered', message: 'The user was deleted during the pull' };
    for (const provider of user.sources) {
      const pulls = this.#pulls.get(keyOf(user, provider));
      const ended = pulls?.map((pull): Pull => {
        return { ...pull, ...(/success|failure/.test(pull.mode) ? {} : { mode: 'failure', error }) };
      });
      if (ended !== undefined) this.#pulls.set(keyOf(user, provider), ended);
    }
  }
}

export function daysIn({ startMs, endMs }: Range): number {
  return Math.max(0, Math.ceil((endMs - startMs) / DAY_MS));
}

/** By index of the user. @throws MillraceError usage when there are too few users for all of them */
function fatesOf({ seed, users: count, faults }: ResolvedSandbox): Map<number, Fate> {
  const left = {
    // First, as not every user can have it.
    retrying: faults.retryingUsers ?? 0,
    failing: faults.failingUsers ?? 0,
    'left out': faults.leftOutUsers ?? 0,
    unpulled: faults.unpulledUsers ?? 0,
  };
  const random = randomOf(seed, 'unlucky users');
  const shuffled = Array.from({ length: count }, (_, index) => ({ index, rank: random() }));
  const fates = new Map<number, Fate>();
  for (const { index } of shuffled.sort((a, b) => a.rank - b.rank)) {
    if (index >= count - (faults.unconnectedUsers ?? 0)) continue;
    const fate = (Object.keys(left) as (keyof typeof left)[]).find(
      (name) => left[name] > 0 && (name !== 'retrying' || !isFromBefore(index)),
    );
    if (fate === undefined) continue;
    left[fate] -= 1;
    fates.set(index, fate);
  }
  for (const [name, missing] of Object.entries(left))
    if (missing > 0)
      throw new MillraceError('usage', `${missing} ${name} users are too many: no user is left for them`);
  return fates;
}

function keyOf({ id }: Pick<User, 'id'>, provider: string): string {
  return `${id} ${provider}`;
}
