import { BulkOps } from './bulk-ops.ts';
import { Endpoints } from './endpoints.ts';
import { Events } from './events.ts';
import { Faults } from './faults.ts';
import { Keys } from './keys.ts';
import { Labs } from './made-up-labs.ts';
import type { MealPlan } from './made-up-meals.ts';
import type { ResolvedSandbox } from './options.ts';
import { Orders } from './orders.ts';
import { ParsingJobs } from './parsing-jobs.ts';
import { Pulls } from './pulls.ts';
import { WebhookSender } from './sender.ts';
import { Teams, type Team } from './teams.ts';
import { Timers } from './timers.ts';
import { Users } from './users.ts';

/** Everything the stand-in knows, in memory. Tests look into it; requests go through the operations. */
export interface World {
  readonly options: ResolvedSandbox;
  readonly timers: Timers;
  readonly faults: Faults;
  readonly keys: Keys;
  readonly teams: Teams;
  /** The team that has the seeded users. */
  readonly team: Team;
  readonly users: Users;
  readonly mealPlan: MealPlan;
  readonly endpoints: Endpoints;
  readonly sender: WebhookSender;
  readonly events: Events;
  readonly pulls: Pulls;
  readonly bulkOps: BulkOps;
  readonly labs: Labs;
  readonly orders: Orders;
  readonly parsingJobs: ParsingJobs;
}

export function createWorld(options: ResolvedSandbox): World {
  const { seed, features } = options;
  const timers = new Timers(options.clock);
  const faults = new Faults(options.faults, seed);
  const keys = new Keys(seed);
  const teams = new Teams(seed);
  const team = teams.create('made-up team', { ...features }, timers.stamp(), options.teamId);
  const users = new Users(timers, {
    count: options.users,
    seed,
    teamId: team.id,
    providers: options.providers,
  });
  const mealPlan = { seed, sinceMs: options.sinceMs, days: options.days, mealsPerDay: options.mealsPerDay };
  const endpoints = new Endpoints(timers, seed);
  const events = new Events(endpoints, options.plan === 'scale' ? options.pipelines : null);
  const sender = new WebhookSender({
    timers,
    endpoints,
    signingNow: options.signingNow,
    onExhausted: ({ message, endpoint }) => {
      if (message.type === 'message.attempt.exhausted') return;
      const data = { message_id: message.id, event_type: message.type, endpoint_id: endpoint.id };
      const subject = subjectOf(message.body) ?? { id: '', teamId: endpoint.teamId, clientUserId: '' };
      events.emit(subject, 'message.attempt.exhausted', data);
    },
  });
  events.sendBy(sender);
  const pulls = new Pulls(timers, events, mealPlan, faults, users.list(team.id));
  const bulkOps = new BulkOps(timers, users, pulls);
  const labs = new Labs(seed, team.id, teams.orgId);
  const orders = new Orders(timers, events, labs, seed);
  const parsingJobs = new ParsingJobs(timers, events, seed);
  return {
    options,
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

/** Whom a message was about, so that the event about it is about them too. */
function subjectOf(body: Buffer): { id: string; teamId: string; clientUserId: string } | null {
  try {
    const envelope = JSON.parse(body.toString()) as Readonly<Record<string, unknown>>;
    const text = (name: string): string => (typeof envelope[name] === 'string' ? envelope[name] : '');
    return { id: text('user_id'), teamId: text('team_id'), clientUserId: text('client_user_id') };
  } catch {
    return null;
  }
}
