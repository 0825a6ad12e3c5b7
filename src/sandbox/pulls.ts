import type { Events } from './events.ts';
import type { Faults } from './faults.ts';
import type { MealPlan } from './made-up-meals.ts';
import { randomOf } from './seeded.ts';
import type { Shelf, State } from './state.ts';
import type { Timers } from './timers.ts';
import { isFromBefore, type Connection, type User, type UserPlan, type Users } from './users.ts';

/**
 * Modes of one pull: `scheduled` → `in_progress` → `success`, or `failure`, or `retrying` → `in_progress` …; connections
 * from before the service knew `retrying` show `in_progress` throughout.
 */
export type PullMode = 'scheduled' | 'in_progress' | 'retrying' | 'success' | 'failure';

export interface Pull {
  readonly user: User;
  readonly provider: string;
  readonly resource: string;
  mode: PullMode;
  error: { readonly type: string; readonly message: string } | null;
  attempt: number;
  /** What it waits for: `waiting` is for another attempt, whatever mode is shown. */
  stage: 'scheduled' | 'running' | 'waiting' | 'over';
  /** Sandbox time of the stage's begin. */
  since: number;
}

/** The pulls of one connection. */
interface ConnectionPulls {
  readonly user: User;
  readonly provider: string;
  readonly pulls: readonly Pull[];
}

interface SavedPulls {
  readonly user: string;
  readonly provider: string;
  readonly pulls: readonly Omit<Pull, 'user' | 'provider'>[];
}

export interface PullsOptions {
  readonly timers: Timers;
  readonly events: Events;
  readonly plan: MealPlan;
  readonly faults: Faults;
  readonly users: Users;
  /** Of the users that it makes, some are unlucky. */
  readonly userPlan: UserPlan;
  readonly state: State;
}

export const PULLED_RESOURCES = ['meal', 'sleep', 'activity'] as const;
const NOT_PULLED = ['glucose', 'body'] as const;

const SECOND = 1000;
/** Sandbox time of each step; a pull of more days takes longer. */
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

/** Historical pulls: each resource of a connection goes through its modes on the sandbox's clock. */
export class Pulls {
  readonly #world: PullsOptions;
  readonly #pulls: Shelf<ConnectionPulls>;
  /** Of seeded users that are not lucky, by index. */
  readonly #fates: ReadonlyMap<number, Fate>;

  /** Goes on with the pulls of an earlier run. */
  constructor(world: PullsOptions) {
    const { users, state } = world;
    this.#world = world;
    this.#fates = fatesOf(world);
    this.#pulls = state.shelf<ConnectionPulls, SavedPulls>('pulls', {
      dump,
      load: (saved) => load(saved, users),
    });
    for (const pull of this.#pulls.all().flatMap(({ pulls }) => pulls)) {
      if (pull.mode === 'success') this.#repeat(pull);
      else this.#follow(pull);
    }
    users.onErased((user) => {
      for (const provider of user.sources) this.#pulls.delete(keyOf(user, provider));
    });
  }

  /** Whether the pulls of the user end in failure, retry on the way, or never begin, all or only that of meals. */
  fateOf(user: User): Fate {
    return this.#fates.get(user.index) ?? 'lucky';
  }

  /** Starts over; a running pull is replaced. */
  start(user: User, provider: string): void {
    const fate = this.fateOf(user);
    if (fate === 'left out') return;
    const begin = { mode: 'scheduled', error: null, attempt: 1, stage: 'scheduled', since: 0 } as const;
    const pulls = PULLED_RESOURCES.filter((resource) => fate !== 'unpulled' || resource !== 'meal').map(
      (resource): Pull => ({ user, provider, resource, ...begin }),
    );
    this.#pulls.put(keyOf(user, provider), { user, provider, pulls });
    for (const pull of pulls) this.#enter(pull, 'scheduled');
  }

  /** The status of a user's pulls, provider by provider, in the service's form; null when there are none. */
  statusOf(user: User, provider?: string): object | null {
    const status: Record<string, object> = {};
    for (const name of user.sources) {
      const { pulls } = this.#pulls.get(keyOf(user, name)) ?? {};
      if (pulls === undefined || (provider !== undefined && provider !== name)) continue;
      const missing = PULLED_RESOURCES.filter(
        (resource) => !pulls.some((pull) => pull.resource === resource),
      );
      status[name] = {
        pulled: Object.fromEntries(pulls.map((pull) => [pull.resource, this.#json(pull)])),
        not_pulled: [...missing, ...NOT_PULLED],
      };
    }
    return Object.keys(status).length === 0 ? null : status;
  }

  #enter(pull: Pull, stage: Pull['stage']): void {
    pull.stage = stage;
    pull.since = this.#world.timers.clock.now();
    const key = keyOf(pull.user, pull.provider);
    const kept = this.#pulls.get(key);
    if (kept !== undefined) this.#pulls.put(key, kept);
    this.#follow(pull);
  }

  #follow(pull: Pull): void {
    switch (pull.stage) {
      case 'scheduled':
        return this.#after(STEPS.scheduled, pull, () => this.#run(pull));
      case 'running':
        return this.#after(STEPS.perPull + STEPS.perDay * this.#world.plan.days, pull, () => this.#end(pull));
      case 'waiting':
        return this.#after(STEPS.retrying, pull, () => this.#run(pull));
      case 'over':
    }
  }

  #run(pull: Pull): void {
    pull.mode = 'in_progress';
    this.#enter(pull, 'running');
  }

  /** Only meals are unlucky, so that a failed pull stands beside others that succeed. */
  #end(pull: Pull): void {
    const fate = pull.resource === 'meal' ? this.fateOf(pull.user) : 'lucky';
    if (fate === 'failing') {
      pull.mode = 'failure';
      pull.error = { type: 'provider_permission', message: 'The made-up provider refused for good' };
      this.#enter(pull, 'over');
      return;
    }
    if (fate === 'retrying' && pull.attempt <= RETRIES) {
      pull.attempt += 1;
      pull.error = { type: 'provider_timeout', message: 'The made-up provider did not answer' };
      if (pull.user.connections.some((one) => one.provider === pull.provider && isNew(one)))
        pull.mode = 'retrying';
      this.#enter(pull, 'waiting');
      return;
    }
    pull.mode = 'success';
    pull.error = null;
    if (pull.resource === 'meal') {
      pull.user.pulled.add(pull.provider);
      this.#world.users.save(pull.user);
    }
    this.#enter(pull, 'over');
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

  /** The same completion can be told two to five times within an hour, each with an id of its own. */
  #repeat(pull: Pull): void {
    const random = randomOf(this.#world.plan.seed, 'completion', pull.user.id, pull.provider, pull.resource);
    const times = random() < 0.7 ? 1 : 2 + Math.floor(random() * 4);
    for (let again = 1; again < times; again += 1) {
      const at = pull.since + random() * STEPS.hour;
      // Of an earlier run: it was told, or nobody was there to tell it.
      if (at < this.#world.timers.clock.now()) continue;
      this.#world.timers.at(at, () => {
        if (!pull.user.erased) this.#announce(pull);
      });
    }
  }

  /** A step is dropped when a newer pull took the place, or the connection is gone. */
  #after(ms: number, pull: Pull, step: () => void): void {
    this.#world.timers.at(pull.since + ms, () => {
      const current = this.#pulls.get(keyOf(pull.user, pull.provider))?.pulls;
      const connected = pull.user.connections.some(({ provider }) => provider === pull.provider);
      if (current?.includes(pull) === true && connected) step();
    });
  }

  #json({ resource, mode, error }: Pull): object {
    const { days, mealsPerDay } = this.#world.plan;
    const { start, end } = this.#range();
    const hasData = resource === 'meal' && mode === 'success' && mealsPerDay > 0;
    return {
      status: mode,
      range_start: start,
      range_end: end,
      days_with_data: hasData ? days : 0,
      error_details: error,
    };
  }

  #range(): { start: string; end: string } {
    const { sinceMs, days } = this.#world.plan;
    return {
      start: this.#world.timers.stamp(sinceMs),
      end: this.#world.timers.stamp(sinceMs + days * 86_400_000 - 1000),
    };
  }
}

/** By index: an earlier run may have changed or erased the users themselves. */
function fatesOf({ plan, faults, userPlan: { count, unconnected } }: PullsOptions): Map<number, Fate> {
  const { failingUsers = 0, retryingUsers = 0, leftOutUsers = 0, unpulledUsers = 0 } = faults.options;
  const left = {
    failing: failingUsers,
    retrying: retryingUsers,
    'left out': leftOutUsers,
    unpulled: unpulledUsers,
  };
  const random = randomOf(plan.seed, 'unlucky users');
  const shuffled = Array.from({ length: count }, (_, index) => ({ index, rank: random() }));
  const fates = new Map<number, Fate>();
  for (const { index } of shuffled.sort((a, b) => a.rank - b.rank)) {
    if (index >= count - unconnected) continue;
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

function dump({ user, provider, pulls }: ConnectionPulls): SavedPulls {
  const saved = pulls.map((pull) => {
    const { user: _, provider: __, ...rest } = pull;
    return rest;
  });
  return { user: user.id, provider, pulls: saved };
}

function load({ user: id, provider, pulls }: SavedPulls, users: Users): ConnectionPulls | null {
  const user = users.known(id);
  if (user === null) return null;
  return { user, provider, pulls: pulls.map((pull) => ({ ...pull, user, provider })) };
}

function isNew({ createdAt }: Connection): boolean {
  return Date.parse(createdAt) >= RETRYING_SINCE;
}
