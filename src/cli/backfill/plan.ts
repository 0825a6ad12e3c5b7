import { Checkpoint } from '../../history/backfill/checkpoint.ts';
import {
  type BackfillPlan,
  countTasks,
  makePlan,
  parseShard,
  planId,
  resourcesIn,
} from '../../history/backfill/plan.ts';
import { chooseResources, MEAL, resourcesWith, type HistoryResource } from '../../history/resources.ts';
import { ERASED_USER } from '../../core/erasure.ts';
import { ErasedUsers } from '../../privacy/erase/erased-users.ts';
import { stateWithout } from '../../privacy/erase/plan-file.ts';
import { formatDuration, parseDuration } from '../../lib/units.ts';
import type { ServiceClient } from '../../history/service/client.ts';
import { configIfAny } from '../config-options.ts';
import { note, plural, printResult, usageError, type Io } from '../io.ts';
import { isOfAll, SERVICE_OPTIONS, serviceSettings, usersOf } from '../service.ts';
import {
  LOADED_AT,
  number,
  type OptionsOf,
  readBy,
  repeated,
  required,
  wholeNumber,
  WORK,
} from '../options.ts';

export function backfillOptions(env: Io['env']) {
  return {
    '--out <place>': required('folder of the tables, or a URL such as s3://bucket/prefix'),
    ...WORK,
    '--user <id>': repeated('a user'),
    '--users-file <file>': 'users, one a line; - is standard input',
    '--all-users': 'every user the service has',
    '--provider <id>': repeated('only this provider'),
    '--resource <names>': repeated('resources such as sleep,heartrate, or all (default: meal)'),
    '--since <day>': 'first day, YYYY-MM-DD',
    '--until <day>': 'last day (default: today)',
    '--window <days>': readBy(wholeNumber(), 'days per request; 0 requests the whole range at once', '0'),
    '--trigger': 'trigger the bulk historical pull first, and follow it to its end',
    '--trigger-only': 'trigger and follow it, and fetch nothing',
    '--shard <number/of>': readBy((text) => parseShard(text, env), 'fetch one of so many parts of the users'),
    '--summary': 'print what all shards in --out did, fetch nothing',
    '--resume': 'continue what is unfinished in --out',
    '--replace': 'replace the files of a finished backfill even if they contain more than this one fetches',
    '--accept-empty': 'remove the rows of users of whom the service lists nothing now',
    '--dry-run': 'print the plan, fetch nothing',
    '--concurrency <n>': readBy(wholeNumber(1), 'requests of one provider at once', '8'),
    '--max-rate <requests>': readBy(number(0.001), 'most requests a second, of all shards together'),
    '--poll <duration>': readBy(parseDuration, 'how often the status of the pulls is checked', '10s'),
    '--patience <duration>': readBy(
      parseDuration,
      'longest wait without progress of the bulk operation or a pull; 0 waits forever',
      '6h',
    ),
    ...LOADED_AT,
    '--config <file>': 'the config file, for its service section',
    '--json': 'print one JSON object as the last line',
    ...SERVICE_OPTIONS,
  };
}

export type BackfillFlags = OptionsOf<ReturnType<typeof backfillOptions>>;

/** The plan of this command line, or of the run that it resumes. @throws MillraceError usage */
export async function planOf(io: Io, options: BackfillFlags, service: ServiceClient): Promise<BackfillPlan> {
  const { user, usersFile, allUsers, provider, since, until, window, shard, triggerOnly } = options;
  const named = user.length > 0 || usersFile !== undefined || allUsers === true;
  const before = options.resume === true ? await resumedPlan(io, options) : null;
  if (options.resume === true && !named) {
    if (before === null) throw usageError(`there is nothing to resume in ${options.out}`);
    checkSame(options, before);
    return before;
  }
  if (!named) throw usageError('name the users: --user, --users-file or --all-users');
  if (since === undefined) throw usageError('--since is needed');
  const asked = {
    resources: resourcesOf(io, options),
    providers: provider,
    since,
    until: until ?? before?.until ?? new Date().toISOString().slice(0, 10),
    windowDays: window,
    ...(shard === undefined ? {} : { shard }),
    ...(triggerOnly === true ? { triggerOnly } : {}),
  };
  // A resumed run keeps its users: there can be new ones when a Job repeats its command.
  const isAll = isOfAll(options);
  if (
    before !== null &&
    isAll &&
    planId({ ...before, users: [] }) === planId(makePlan({ ...asked, users: [] }))
  )
    return before;
  const users = await usersOf(io, options, service);
  const plan = makePlan({ ...asked, users: withoutErased(io, users, erasedUsers(io, options.config)) });
  // An erased user keeps a place in the resumed plan, so that tasks keep their numbers.
  const left = before?.users.filter((one) => one !== ERASED_USER);
  return before !== null && planId({ ...before, users: left ?? [] }) === planId(plan) ? before : plan;
}

function namesIn(resources: readonly string[]): string[] {
  return resources.flatMap((names) => names.split(',')).flatMap((name) => name.trim() || []);
}

/** The resources to fetch. @throws MillraceError usage for an unknown one */
function resourcesOf(io: Io, options: BackfillFlags): HistoryResource[] {
  const names = namesIn(options.resource);
  const known = resourcesWith(serviceSettings(io, options).resources);
  try {
    return chooseResources(names.length === 0 ? [MEAL.name] : names, known);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usageError(`--resource: ${error.message}`, { cause: error });
  }
}

/** The plan of the unfinished run, without users who were erased since. */
async function resumedPlan(io: Io, options: BackfillFlags): Promise<BackfillPlan | null> {
  const { out, config, dryRun } = options;
  const plan = Checkpoint.planOf(out);
  if (plan === null) return null;
  const isErased = erasedUsers(io, config);
  if (!plan.users.some(isErased)) return plan;
  // Named users are reported when they are read.
  if (isOfAll(options)) withoutErased(io, plan.users, isErased);
  if (dryRun !== true) await Checkpoint.forget(out, isErased, (state) => stateWithout(state, isErased));
  return { ...plan, users: plan.users.map((user) => (isErased(user) ? ERASED_USER : user)) };
}

/** @throws MillraceError usage for an option that differs from the resumed run */
function checkSame({ provider, resource, since, until, window }: BackfillFlags, before: BackfillPlan): void {
  const said = {
    provider: provider.length === 0 ? undefined : [...new Set(provider)].toSorted().join(', '),
    resource: resource.length === 0 ? undefined : [...new Set(namesIn(resource))].toSorted().join(','),
    since,
    until,
    window: window === 0 ? undefined : String(window),
  };
  const began = {
    provider: before.providers.join(', '),
    resource: resourcesIn(before)
      .map(({ name }) => name)
      .join(','),
    since: before.since,
    until: before.until,
    window: String(before.windowDays),
  };
  for (const name of ['provider', 'resource', 'since', 'until', 'window'] as const)
    if (said[name] !== undefined && said[name] !== began[name])
      throw usageError(
        `the run in --out began ${began[name] === '' ? 'for all providers' : `with --${name} ${began[name]}`}; leave out --${name} to resume it`,
      );
}

export function showPlan(io: Io, plan: BackfillPlan, options: BackfillFlags): void {
  const { users, resources, ...rest } = plan;
  const estimate_ms = Math.ceil(users.length / USUAL_CONNECTIONS) * USUAL_EVERY_MS;
  const triggers = plan.providers.map((provider) => ({ provider, connections: users.length, estimate_ms }));
  const shown = {
    ...rest,
    ...(resources === undefined ? {} : { resources: resources.map(({ name }) => name) }),
    users: users.length,
    tasks: countTasks(plan),
    triggers: options.trigger === true ? triggers : [],
  };
  const lines = shown.triggers.map(({ provider, connections, estimate_ms: ms }) => {
    const estimate = `about ${formatDuration(ms)} at the service's rate`;
    return `trigger    ${provider}: ${connections} connections, ${estimate}`;
  });
  const { since, until } = plan;
  const range = `range      ${since} to ${until}`;
  printResult(io, options, shown, `users      ${shown.users}`, range, `requests   ${shown.tasks}`, ...lines);
}

/** Tells erased users by the list of the config. */
export function erasedUsers(io: Io, config: string | undefined): (user: string) => boolean {
  const loaded = configIfAny({ config }, io);

  const erased = loaded === null ? null : ErasedUsers.open(loaded.config.erasure.path);
  return (user) => erased?.has({ team: null, user, clientUser: null }) === true;
}

/** Leaves out erased users, and says how many. */
function withoutErased(io: Io, users: readonly string[], isErased: (user: string) => boolean): string[] {
  const left = users.filter((user) => !isErased(user));
  const count = users.length - left.length;
  if (count > 0) note(io, `left out: ${plural(count, 'erased user')}`);
  return left;
}

/** The service's usual rate of triggers, for an estimate. */
const USUAL_CONNECTIONS = 8;
const USUAL_EVERY_MS = 60_000;
