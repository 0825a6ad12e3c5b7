import { BulkOps } from './bulk-ops.ts';
import { Endpoints } from './endpoints.ts';
import { Events } from './events.ts';
import { Faults } from './faults.ts';
import { HealthData } from './health-data.ts';
import { Keys, Teams } from './teams.ts';
import { Labs } from './made-up-labs.ts';
import type { ResolvedSandbox } from './options.ts';
import { Orders } from './orders.ts';
import { ParsingJobs } from './parsing-jobs.ts';
import { Pulls } from './pulls.ts';
import { WebhookSender } from './sender.ts';
import { Timers } from './timers.ts';
import { Users } from './users.ts';

/** The state of the stand-in, in memory. */
export type World = ReturnType<typeof createWorld>;

export function createWorld(options: ResolvedSandbox) {
  const { seed, features } = options;
  const timers = new Timers(options.clock);
  const faults = new Faults(options.faults, seed);
  const keys = new Keys(seed);
  const teams = new Teams(seed);
  /** With the seeded users. */
  const team = teams.create('made-up team', { ...features }, timers.stamp(), options.teamId);
  const users = new Users(timers, team.id, options);
  const endpoints = new Endpoints(timers, seed);
  const pipelines = options.plan === 'scale' ? options.pipelines : null;
  const sender = new WebhookSender({ timers, endpoints, signingNow: options.signingNow });
  const events = new Events({ endpoints, sender, pipelines });
  const health = new HealthData(options, timers);
  const pulls = new Pulls({ timers, events, users, teams, options });
  const bulkOps = new BulkOps({ timers, users, pulls, faults, throttles: options.throttles });
  const labs = new Labs(seed, team.id, teams.orgId);
  const orders = new Orders({ timers, events, labs, users, seed, unknownValues: options.unknownValues });
  const parsingJobs = new ParsingJobs({ timers, events, users, seed });
  return {
    options,
    timers,
    faults,
    keys,
    teams,
    team,
    users,
    endpoints,
    sender,
    events,
    health,
    pulls,
    bulkOps,
    labs,
    orders,
    parsingJobs,
  };
}
