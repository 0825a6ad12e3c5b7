import type { Events } from './events.ts';
import type { Faults } from './faults.ts';
import { daysWithData, type MealPlan } from './made-up-meals.ts';
import { randomOf, type Name } from './seeded.ts';
import type { Shelf, State } from './state.ts';
import type { Timers } from './timers.ts';
import type { Connection, User, Users } from './users.ts';

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

/** The pulls of one connection as they are kept. */
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
  /** Those the seed made, of whom some are unlucky. */
  readonly seeded: readonly User[];
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

/** Historical pulls: each resource of a connection goes through its modes on the sandbox's clock. */
export class Pulls {
  readonly #timers: Timers;
  readonly #events: Events;
  readonly #users: Users;
  readonly #shelf: Shelf<SavedPulls>;
  readonly #plan: MealPlan;
  readonly #pulls = new Map<string, Map<string, Map<string, Pull>>>();
  readonly #failing = new Set<number>();
  readonly #retrying = new Set<number>();
  readonly #leftOut = new Set<number>();
  readonly #unpulled = new Set<number>();
  readonly #seed: Name;

  constructor({ timers, events, plan, faults, users, seeded, state }: PullsOptions) {
    this.#timers = timers;
    this.#events = events;
    this.#users = users;
    this.#shelf = state.shelf('pulls');
    users.onErased((user) => this.#forget(user));
    this.#plan = plan;
    this.#seed = plan.seed;
    const { failingUsers = 0, retryingUsers = 0, leftOutUsers = 0, unpulledUsers = 0 } = faults.options;
    const random = randomOf(plan.seed, 'unlucky users');
    const shuffled = seeded.map((user) => ({ user, rank: random() })).sort((a, b) => a.rank - b.rank);
    for (const { user } of shuffled) {
      if (user.connections.length === 0) continue;
      if (this.#failing.size < failingUsers) this.#failing.add(user.index);
      else if (this.#retrying.size < retryingUsers && user.connections.some(isNew))
        this.#retrying.add(user.index);
      else if (this.#leftOut.size < leftOutUsers) this.#leftOut.add(user.index);
      else if (this.#unpulled.size < unpulledUsers) this.#unpulled.add(user.index);
    }
  }

  /** Whether the pulls of the user end in failure, retry on the way, or never begin, all or only that of meals. */
  fateOf(user: User): 'failing' | 'retrying' | 'left out' | 'unpulled' | 'lucky' {
    if (this.#failing.has(user.index)) return 'failing';
    if (this.#leftOut.has(user.index)) return 'left out';
    if (this.#unpulled.has(user.index)) return 'unpulled';
    return this.#retrying.has(user.index) ? 'retrying' : 'lucky';
  }

  /** Starts over; a pull under way is replaced. */
  start(user: User, provider: string): void {
    const fate = this.fateOf(user);
    if (fate === 'left out') return;
    const byResource = new Map<string, Pull>();
    const byProvider = this.#pulls.get(user.id) ?? new Map<string, Map<string, Pull>>();
    this.#pulls.set(user.id, byProvider.set(provider, byResource));
    for (const resource of PULLED_RESOURCES) {
      if (fate === 'unpulled' && resource === 'meal') continue;
      const rest = { mode: 'scheduled', error: null, attempt: 1 } as const;
      const pull: Pull = { user, provider, resource, ...rest, stage: 'scheduled', since: 0 };
      byResource.set(resource, pull);
      this.#enter(pull, 'scheduled');
    }
  }

  /** Goes on with the pulls of an earlier run. */
  restore(): void {
    for (const { user: id, provider, pulls } of this.#shelf.all()) {
      const user = this.#users.known(id);
      if (user === null) continue;
      const restored = pulls.map((pull): Pull => ({ ...pull, user, provider }));
      const byProvider = this.#pulls.get(id) ?? new Map<string, Map<string, Pull>>();
      const byResource = new Map(restored.map((pull) => [pull.resource, pull]));
      this.#pulls.set(id, byProvider.set(provider, byResource));
      for (const pull of restored) {
        if (pull.mode === 'success') this.#repeat(pull);
        else this.#follow(pull);
      }
    }
  }

  /** The status of a user's pulls, provider by provider, in the service's form; null when there are none. */
  statusOf(user: User, provider?: string): object | null {
    const byProvider = [...(this.#pulls.get(user.id) ?? [])].filter(
      ([name]) => provider === undefined || name === provider,
    );
    if (byProvider.length === 0) return null;
    return Object.fromEntries(
      byProvider.map(([name, byResource]) => {
        const pulled = Object.fromEntries(
          [...byResource].map(([resource, pull]) => [resource, this.#json(pull)]),
        );
        const missing = PULLED_RESOURCES.filter((resource) => !byResource.has(resource));
        return [name, { pulled, not_pulled: [...missing, ...NOT_PULLED] }];
      }),
    );
  }

  #enter(pull: Pull, stage: Pull['stage']): void {
    pull.stage = stage;
    pull.since = this.#timers.clock.now();
    this.#save(pull);
    this.#follow(pull);
  }

  #follow(pull: Pull): void {
    switch (pull.stage) {
      case 'scheduled':
        return this.#after(STEPS.scheduled, pull, () => this.#run(pull));
      case 'running':
        return this.#after(STEPS.perPull + STEPS.perDay * this.#plan.days, pull, () => this.#end(pull));
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
      this.#users.save(pull.user);
    }
    this.#enter(pull, 'over');
    this.#announce(pull);
    this.#repeat(pull);
  }

  #announce(pull: Pull): void {
    const { start, end } = this.#range();
    this.#events.emit(pull.user, `historical.data.${pull.resource}.created`, {
      user_id: pull.user.id,
      start_date: start,
      end_date: end,
      provider: pull.provider,
      is_final: true,
    });
  }

  /** The same completion can be told two to five times within an hour, each with an id of its own. */
  #repeat(pull: Pull): void {
    const random = randomOf(this.#seed, 'completion', pull.user.id, pull.provider, pull.resource);
    const times = random() < 0.7 ? 1 : 2 + Math.floor(random() * 4);
    for (let again = 1; again < times; again += 1) {
      const at = pull.since + random() * STEPS.hour;
      // Of an earlier run: it was told, or nobody was there to tell it.
      if (at < this.#timers.clock.now()) continue;
      this.#timers.at(at, () => {
        if (!pull.user.erased) this.#announce(pull);
      });
    }
  }

  #save({ user, provider }: Pull): void {
    const pulls = [...(this.#pulls.get(user.id)?.get(provider)?.values() ?? [])];
    const kept = pulls.map((pull) => {
      const { user: _, provider: __, ...rest } = pull;
      return rest;
    });
    this.#shelf.put(`${user.id} ${provider}`, { user: user.id, provider, pulls: kept });
  }

  #forget(user: User): void {
    for (const provider of this.#pulls.get(user.id)?.keys() ?? [])
      this.#shelf.delete(`${user.id} ${provider}`);
    this.#pulls.delete(user.id);
  }

  /** A step is dropped when a newer pull took the place, or the connection is gone. */
  #after(ms: number, pull: Pull, step: () => void): void {
    this.#timers.at(pull.since + ms, () => {
      const current = this.#pulls.get(pull.user.id)?.get(pull.provider)?.get(pull.resource);
      const connected = pull.user.connections.some(({ provider }) => provider === pull.provider);
      if (current === pull && connected) step();
    });
  }

  #json(pull: Pull): object {
    const { start, end } = this.#range();
    const days = pull.resource === 'meal' ? daysWithData(this.#plan) : 0;
    return {
      status: pull.mode,
      range_start: start,
      range_end: end,
      days_with_data: pull.mode === 'success' ? days : 0,
      error_details: pull.error,
    };
  }

  #range(): { start: string; end: string } {
    const { sinceMs, days } = this.#plan;
    return {
      start: this.#timers.stamp(sinceMs),
      end: this.#timers.stamp(sinceMs + days * 86_400_000 - 1000),
    };
  }
}

function isNew({ createdAt }: Connection): boolean {
  return Date.parse(createdAt) >= RETRYING_SINCE;
}
