import { pulledKey, RESOURCES } from './health-data.ts';
import type { Events } from './events.ts';
import type { ResolvedSandbox } from './options.ts';
import { randomOf, uuidOf } from './seeded.ts';
import type { Timers } from './timers.ts';
import { isFromBefore, type Connection, type User, type Users } from './users.ts';

/**
 * Modes of a pull: `scheduled` → `in_progress` → `success`, or `failure`, or `retrying` → `in_progress` …; connections
 * older than `retrying` show `in_progress` instead.
 */
type PullMode = 'scheduled' | 'in_progress' | 'retrying' | 'success' | 'failure';

interface Pull {
  readonly user: User;
  readonly provider: string;
  readonly resource: string;
  mode: PullMode;
  error: { readonly type: string; readonly message: string } | null;
  attempt: number;
  readonly times: { scheduled_at: string; started_at: string | null; ended_at: string | null };
}

interface PullsOptions {
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
    const times = { scheduled_at: this.#world.timers.stamp(), started_at: null, ended_at: null };
    const pulls = RESOURCES.filter((resource) => fate !== 'unpulled' || resource !== 'meal').map(
      (resource): Pull => ({
        user,
        provider,
        resource,
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
    this.#after(STEPS.perPull + STEPS.perDay * this.#world.options.days, pull, () => this.#end(pull));
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
      if (pull.user.connections.some((one) => one.provider === pull.provider && isNew(one)))
        pull.mode = 'retrying';
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
    const { start, end } = this.#range();
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
      this.#world.timers.after(random() * STEPS.hour, () => {
        if (!pull.user.erased) this.#announce(pull);
      });
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

  #json({ user, provider, resource, mode, error, times }: Pull): object {
    const { days, mealsPerDay, samplesPerDay } = this.#world.options;
    const { start, end } = this.#range();
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

  #range(): { start: string; end: string } {
    const { sinceMs, days } = this.#world.options;
    return {
      start: this.#world.timers.stamp(sinceMs),
      end: this.#world.timers.stamp(sinceMs + days * 86_400_000 - 1000),
    };
  }
}

/** By index of the user. */
function fatesOf({ seed, users: count, faults }: ResolvedSandbox): Map<number, Fate> {
  const {
    failingUsers = 0,
    retryingUsers = 0,
    leftOutUsers = 0,
    unpulledUsers = 0,
    unconnectedUsers = 0,
  } = faults;
  const left = {
    failing: failingUsers,
    retrying: retryingUsers,
    'left out': leftOutUsers,
    unpulled: unpulledUsers,
  };
  const random = randomOf(seed, 'unlucky users');
  const shuffled = Array.from({ length: count }, (_, index) => ({ index, rank: random() }));
  const fates = new Map<number, Fate>();
  for (const { index } of shuffled.sort((a, b) => a.rank - b.rank)) {
    if (index >= count - unconnectedUsers) continue;
    const fate = (Object.keys(left) as (keyof typeof left)[]).find(
      (name) => left[name] > 0 && (name !== 'retrying' || !isFromBefore(index)),
    );
    if (fate === undefined) continue;
    left[fate] -= 1;
    fates.set(index, fate);
  }
  return fates;
}

function keyOf({ id }: Pick<User, 'id'>, provider: string): string {
  return `${id} ${provider}`;
}

function isNew({ createdAt }: Connection): boolean {
  return Date.parse(createdAt) >= RETRYING_SINCE;
}
