import { BulkOps } from './bulk-ops.ts';
import { Endpoints } from './endpoints.ts';
import { Events } from './events.ts';
import { Faults } from './faults.ts';
import { Keys, Teams } from './teams.ts';
import { Labs } from './made-up-labs.ts';
import type { ResolvedSandbox } from './options.ts';
import { Orders } from './orders.ts';
import { ParsingJobs } from './parsing-jobs.ts';
import { Pulls } from './pulls.ts';
import { WebhookSender } from './sender.ts';
import type { State } from './state.ts';
import { Timers } from './timers.ts';
import { Users } from './users.ts';

/** Everything the stand-in knows, in memory, and written through where it is kept. Requests go through the operations. */
export type World = ReturnType<typeof createWorld>;

/** A world as its seed makes it, or as an earlier run left it in `state`. */
export function createWorld(options: ResolvedSandbox, state: State) {
  /** Keeps what has changed since the last time: once per request and timer. */
  const commit = (): void => state.commit(options.clock.now());
  const { seed, features } = options;
  const timers = new Timers(options.clock, commit);
  const faults = new Faults(options.faults, seed);
  const keys = new Keys(seed, state);
  const teams = new Teams(seed, state);
  /** The team that has the seeded users. */
  const team = teams.first(options.teamId, { ...features }, timers.stamp());
  const { unconnectedUsers: unconnected = 0 } = options.faults;
  const plan = { count: options.users, unconnected, seed, teamId: team.id, providers: options.providers };
  const users = new Users(timers, plan, state);
  const mealPlan = { seed, sinceMs: options.sinceMs, days: options.days, mealsPerDay: options.mealsPerDay };
  const endpoints = new Endpoints(timers, seed, state);
  const pipelines = options.plan === 'scale' ? options.pipelines : null;
  const sender = new WebhookSender({ timers, endpoints, signingNow: options.signingNow, state, commit });
  const events = new Events({ endpoints, sender, pipelines, state, commit });
  const pulls = new Pulls({ timers, events, plan: mealPlan, faults, users, userPlan: plan, state });
  const bulkOps = new BulkOps({ timers, users, pulls, faults, state });
  const labs = new Labs(seed, team.id, teams.orgId);
  const orders = new Orders({ timers, events, labs, teams, users, seed, state });
  const parsingJobs = new ParsingJobs({ timers, events, users, seed, state });
  return {
    options,
    kept: state,
    commit,
    timers,
    faults,
    keys,
    teams,
    team,
    users,
    mealPlan,
    endpoints,
    sender,
    events,
    pulls,
    bulkOps,
    labs,
    orders,
    parsingJobs,
  };
}
