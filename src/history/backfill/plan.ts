import { hash } from 'node:crypto';
import { ERASED_USER } from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
import { isCalendarDay } from '../../lib/calendar-day.ts';
import { isUuid } from '../../lib/uuid.ts';
import { MEAL, tablesOf, type HistoryResource } from '../resources.ts';

/** What a backfill fetches. Runs with equal plans make equal files. */
export interface BackfillPlan {
  /** UUIDs, lower case, sorted, each once. */
  readonly users: readonly string[];
  /** Provider identifiers, sorted; empty asks for all providers at once. */
  readonly providers: readonly string[];
  /** `YYYY-MM-DD`, both inclusive. */
  readonly since: string;
  readonly until: string;
  /** Sorted by name, as the run began with them; absent for meals alone. */
  readonly resources?: readonly HistoryResource[];
  /** Days of one request; 0 for one request for all days. */
  readonly windowDays: number;
  /** The users are those of this shard; absent for all of them. */
  readonly shard?: Shard;
  /** The service pulls, and nothing is fetched. */
  readonly triggerOnly?: true;
}

/** One request series: a resource of one user, with one provider or all, in one window. */
export interface Task {
  /** Place in the plan, from 0; the order of rows in the files. */
  readonly index: number;
  readonly user: string;
  readonly resource: HistoryResource;
  readonly provider: string | null;
  /** As in the request; not sent for a resource without a range. */
  readonly start: string;
  readonly end: string;
}

/** One user with one provider. */
export interface Connection {
  readonly user: string;
  readonly provider: string;
}

/** Key of a user with a provider, or with all providers. */
export function keyOf({ user, provider }: Pick<Task, 'user' | 'provider'>): string {
  return `${user} ${provider ?? ''}`;
}

/** Key of the pull of one resource of a user with a provider, or with all providers. */
export function pullKeyOf(
  task: Pick<Task, 'user' | 'provider'> & { readonly resource: { readonly name: string } },
): string {
  return `${keyOf(task)} ${task.resource.name}`;
}

/** What a key of `keyOf` or `pullKeyOf` names. */
export function partsOf(key: string): { readonly connection: string; readonly resource?: string } {
  const [user, provider, resource] = key.split(' ');
  return { connection: `${user} ${provider}`, ...(resource === undefined ? {} : { resource }) };
}

export function resourcesIn({
  resources = [MEAL],
}: Pick<BackfillPlan, 'resources'>): readonly HistoryResource[] {
  return resources;
}

/** The tables of a plan's resources, each once. */
export function tablesIn(plan: Pick<BackfillPlan, 'resources'>): readonly string[] {
  return [...new Set(resourcesIn(plan).flatMap(tablesOf))];
}

const DAY = 86_400_000;

/** @throws MillraceError usage, naming what is wrong */
export function makePlan(plan: BackfillPlan): BackfillPlan {
  const users = [...new Set(plan.users.map((user) => user.trim().toLowerCase()))].filter(Boolean).toSorted();
  for (const user of users) if (!isUuid(user)) throw new MillraceError('usage', `user ${user} is not a UUID`);
  const { shard } = plan;
  const own = shard === undefined ? users : users.filter((user) => isInShard(user, shard));
  const { resources, ...others } = plan;
  const isMeals = resources?.length === 1 && resources[0] === MEAL;
  const [since, until] = [dayOf('--since', plan.since), dayOf('--until', plan.until)];
  if (until < since)
    throw new MillraceError('usage', `--until ${plan.until} is before --since ${plan.since}`);
  const providers = [...new Set(plan.providers)].toSorted();
  return { ...others, users: own, providers, ...(resources === undefined || isMeals ? {} : { resources }) };
}

/** The tasks of a plan, in order. */
export function* tasksOf(plan: BackfillPlan): Generator<Task> {
  const { users, providers } = plan;
  let index = 0;
  const resources = resourcesIn(plan).map((resource) => ({ resource, windows: windowsOf(plan, resource) }));
  for (const user of users) {
    for (const { resource, windows } of resources) {
      for (const provider of providers.length === 0 ? [null] : providers) {
        for (const window of windows) {
          if (user !== ERASED_USER) yield { index, user, resource, provider, ...window };
          index += 1;
        }
      }
    }
  }
}

/** The users of the plan who were not erased. */
export function usersLeft({ users }: BackfillPlan): readonly string[] {
  return users.filter((user) => user !== ERASED_USER);
}

/** Every user of the plan with every provider. */
export function connectionsOf(plan: BackfillPlan): Connection[] {
  return plan.providers.flatMap((provider) => usersLeft(plan).map((user) => ({ user, provider })));
}

export function countTasks(plan: BackfillPlan): number {
  const windows = resourcesIn(plan).map((resource) => windowsOf(plan, resource).length);
  const requests = windows.reduce((sum, count) => sum + count, 0);
  return usersLeft(plan).length * Math.max(1, plan.providers.length) * requests;
}

/** Fingerprint of the plan. */
export function planId(plan: BackfillPlan): string {
  const { users, providers, since, until, windowDays, shard, triggerOnly, resources } = plan;
  const parts = { users, providers, since, until, windowDays, shard, triggerOnly, resources };
  const text = JSON.stringify(parts);
  return hash('sha256', text, 'hex').slice(0, 16);
}

/** Windows that together cover every instant once. With its fractions: the service reads a bare end day as 23:59:59. */
function windowsOf(
  { since, until, windowDays: days }: BackfillPlan,
  { range }: HistoryResource,
): { start: string; end: string }[] {
  const first = dayOf('since', since);
  const last = dayOf('until', until);
  const windows = [];
  const step = days === 0 || range === 'none' ? last - first + DAY : days * DAY;
  for (let at = first; at <= last; at += step) {
    const end = Math.min(at + step - DAY, last);
    windows.push({ start: `${textOf(at)}T00:00:00Z`, end: `${textOf(end)}T23:59:59.999999Z` });
  }
  return windows;
}

function textOf(day: number): string {
  return new Date(day).toISOString().slice(0, 10);
}

function dayOf(what: string, text: string): number {
  if (!isCalendarDay(text)) throw new MillraceError('usage', `${what} ${text} is not a day (YYYY-MM-DD)`);
  return Date.parse(`${text}T00:00:00Z`);
}

/** A part of the users, for a backfill in several runs. */
export interface Shard {
  /** From 1. */
  readonly number: number;
  readonly of: number;
}

const MOST = 1000;
const FOLDER = /^shard-(\d+)-of-(\d+)$/;

/**
 * Parses `3/16`, or `job/16` with the number in JOB_COMPLETION_INDEX, which an indexed Job of Kubernetes counts from 0.
 * @throws RangeError for any other text
 */
export function parseShard(text: string, env: NodeJS.ProcessEnv): Shard {
  const [, which = '', of = ''] = /^(\d+|job)\/(\d+)$/.exec(text) ?? [];
  if (which === '') throw new RangeError('must be like 3/16, or job/16 in an indexed Job');
  const index = env['JOB_COMPLETION_INDEX'] ?? '';
  if (which === 'job' && !/^\d+$/.test(index))
    throw new RangeError('needs JOB_COMPLETION_INDEX, which an indexed Job sets');
  const shard = { number: which === 'job' ? Number(index) + 1 : Number(which), of: Number(of) };
  if (shard.of < 1 || shard.of > MOST) throw new RangeError(`must be one of 1 to ${MOST} shards`);
  if (shard.number < 1 || shard.number > shard.of)
    throw new RangeError(`must be from 1/${of} to ${of}/${of}`);
  return shard;
}

/** Whether a user belongs to a shard; each user belongs to one. */
function isInShard(user: string, { number, of }: Shard): boolean {
  return (parseInt(hash('sha256', user, 'hex').slice(0, 12), 16) % of) + 1 === number;
}

/** Its folder below the output's: `shard-03-of-16`. */
export function shardFolder({ number, of }: Shard): string {
  return `shard-${String(number).padStart(String(of).length, '0')}-of-${of}`;
}

/** The shard whose folder has this name, or null. */
export function shardOf(folder: string): Shard | null {
  const [, number, of] = FOLDER.exec(folder) ?? [];
  return number === undefined ? null : { number: Number(number), of: Number(of) };
}
