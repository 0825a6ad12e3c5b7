import { Command, Option } from 'commander';
import { MillraceError } from '../../core/errors.ts';
import { parseDuration } from '../../lib/units.ts';
import type { SandboxOptions } from '../../sandbox/options.ts';
import { startSandbox, type Sandbox } from '../../sandbox/start.ts';
import { print, type Io } from '../io.ts';
import { createLog } from '../log.ts';
import { readEtl } from './etl.ts';
import { openPipelines } from './pipelines.ts';

const HELP = `
Examples:
  millrace sandbox
  millrace sandbox --users 1000 --seed demo --speed 1000
  MILLRACE_SECRET=whsec_… millrace sandbox --webhook http://127.0.0.1:8080/webhooks --daily 10s
  millrace sandbox --state sandbox.db --users 1000
  millrace sandbox --etl etl.yaml --daily 1s
  millrace sandbox --failing-users 3 --retrying-users 5 --rate-429 0.05 --drop-connections 0.01

A stand-in of the whole service with made-up data: the same seed gives the same users and meals. Its address lists the
operations. With --speed 1000 an hour of throttles, pulls, grace periods and webhook retries takes 3.6 seconds.

--etl FILE publishes the events to Event Hubs and Pub/Sub as the service's pipelines do; \${NAME} is a variable:
  destinations:
    hubs:
      type: event-hubs
      connectionString: \${HUBS}
      hub: events                       # for what no route takes
      routes: [{ event_type_prefix: labtest., event_hub: labtest-events }]   # or event_type_regex; the first decides
      blobs: ./large-events             # folder of bodies above 1 MiB
    topics: { type: pubsub, project: acme-health, topic: events, ordering: true, metadata: underscores }

Events are signed with $MILLRACE_SECRET, or the variable that --secret-env names; without one with a new secret.
Prints its address and keys; logs a line of JSON with "msg":"listening" and its real URL on stderr. SIGTERM ends it.`;

interface Options {
  readonly host: string;
  readonly port: string;
  readonly users: string;
  readonly mealsPerDay: string;
  readonly days: string;
  readonly since: string;
  readonly seed: string;
  readonly speed: string;
  readonly afterPull?: boolean;
  readonly webhook: readonly string[];
  readonly secretEnv: string;
  readonly secret?: string;
  readonly daily?: string;
  readonly etl?: string;
  readonly state?: string;
  readonly failingUsers: string;
  readonly retryingUsers: string;
  readonly unconnectedUsers: string;
  readonly leftOutUsers: string;
  readonly unpulledUsers: string;
  readonly stuckOps: string;
  readonly abortedOps: string;
  readonly failedOps: string;
  readonly rate429: string;
  readonly dropConnections: string;
  readonly json?: boolean;
}

/** `millrace sandbox`: the stand-in service on its own, until a signal ends it. */
export function sandboxCommand(io: Io): Command {
  return new Command('sandbox')
    .description('a stand-in of the whole service, with made-up data, for development and tests')
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <n>', 'port to listen on; 0 takes a free one', '8090')
    .option('--users <n>', 'users that are there at the start', '100')
    .option('--meals-per-day <n>', 'meals of a user on a day', '3')
    .option('--days <n>', 'days with data', '180')
    .option('--since <date>', 'first day with data', '2026-01-01')
    .option('--seed <s>', 'what the data is made from', 'made-up')
    .option('--speed <x>', 'how many times faster than the wall it runs', '1')
    .option('--after-pull', 'meals can be read only after a historical pull')
    .option(
      '--webhook <url>',
      'send events there; may be repeated',
      (url, all: string[]) => [...all, url],
      [],
    )
    .option('--secret-env <name>', 'variable with the secret that events are signed with', 'MILLRACE_SECRET')
    .addOption(new Option('--secret <secret>').hideHelp())
    .option('--daily <duration>', 'send a daily.data event so often, such as 10s')
    .option('--state <file>', 'SQLite file that keeps users, keys, orders, jobs and what waits over restarts')
    .option('--etl <file>', 'publish events to Event Hubs and Pub/Sub too, as the YAML file says')
    .option('--failing-users <n>', 'users whose historical pulls fail', '0')
    .option('--retrying-users <n>', 'users whose historical pulls retry first', '0')
    .option('--unconnected-users <n>', 'users without a connection to any provider', '0')
    .option('--left-out-users <n>', 'users whose triggers start no pull', '0')
    .option('--unpulled-users <n>', 'users whose meals are not pulled', '0')
    .option('--stuck-ops <n>', 'bulk operations that never start: the first', '0')
    .option('--aborted-ops <n>', 'bulk operations that are aborted halfway: the next', '0')
    .option('--failed-ops <n>', 'bulk operations that fail halfway: the next', '0')
    .option('--rate-429 <share>', 'share of requests answered with 429', '0')
    .option('--drop-connections <share>', 'share of requests whose connection is cut', '0')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      const secret = secretFrom(io, options);
      const log = createLog(io, 'info');
      const pipelines =
        options.etl === undefined ? null : await openPipelines(readEtl(options.etl, io.env), log);
      const sandbox = await startSandbox({
        ...optionsOf(options, secret),
        ...(pipelines === null ? {} : { pipelines }),
      });
      log.info({ url: sandbox.url, users: Number(options.users), seed: options.seed }, 'listening');
      const shown = describe(sandbox, secret);
      if (options.json === true) print(io, JSON.stringify(shown));
      else
        for (const [name, value] of Object.entries(shown)) print(io, `${name.padEnd(22)} ${String(value)}`);
      await new Promise<void>((resolve) => {
        if (io.signal.aborted) resolve();
        io.signal.addEventListener('abort', () => resolve(), { once: true });
      });
      const unpublished = (await pipelines?.close()) ?? 0;
      await sandbox.stop();
      if (unpublished > 0) {
        const what = options.state === undefined ? 'were given up' : 'are kept for the next run';
        log.warn({ unpublished }, `messages that no pipeline took ${what}`);
      }
      log.info('stopped');
    });
}

/** Null for a new one. @throws MillraceError usage */
function secretFrom(io: Io, { secret, secretEnv }: Options): string | null {
  if (secret !== undefined)
    throw new MillraceError('usage', '--secret can be read in the list of processes: use --secret-env');
  return io.env[secretEnv] || null;
}

function optionsOf(options: Options, secret: string | null): SandboxOptions {
  return {
    host: options.host,
    port: numberOf('--port', options.port),
    users: numberOf('--users', options.users),
    mealsPerDay: numberOf('--meals-per-day', options.mealsPerDay),
    days: numberOf('--days', options.days),
    since: options.since,
    seed: options.seed,
    speed: numberOf('--speed', options.speed),
    data: options.afterPull === true ? 'after_pull' : 'ready',
    webhooks: options.webhook.map((url) => ({ url: urlOf(url), ...(secret === null ? {} : { secret }) })),
    ...(options.state === undefined ? {} : { state: options.state }),
    ...(options.daily === undefined ? {} : { dailyEveryMs: durationOf(options.daily) }),
    faults: {
      failingUsers: numberOf('--failing-users', options.failingUsers),
      retryingUsers: numberOf('--retrying-users', options.retryingUsers),
      unconnectedUsers: numberOf('--unconnected-users', options.unconnectedUsers),
      leftOutUsers: numberOf('--left-out-users', options.leftOutUsers),
      unpulledUsers: numberOf('--unpulled-users', options.unpulledUsers),
      stuckOps: numberOf('--stuck-ops', options.stuckOps),
      abortedOps: numberOf('--aborted-ops', options.abortedOps),
      failedOps: numberOf('--failed-ops', options.failedOps),
      rate429: shareOf('--rate-429', options.rate429),
      dropConnections: shareOf('--drop-connections', options.dropConnections),
    },
  };
}

/** Its keys guard nothing but made-up data. A signing secret is shown only when nobody could know it otherwise. */
function describe(sandbox: Sandbox, givenSecret: string | null): Readonly<Record<string, unknown>> {
  const { url, teamId, apiKey, orgManagementKey, teamManagementKey, state } = sandbox;
  const made = givenSecret === null ? state.endpoints.list(teamId) : [];
  return {
    url,
    team_id: teamId,
    api_key: apiKey,
    org_management_key: orgManagementKey,
    team_management_key: teamManagementKey,
    first_user_id: state.users.list(teamId)[0]?.id ?? null,
    ...(made.length === 0 ? {} : { webhook_secrets: made.map(({ secrets }) => secrets[0]) }),
  };
}

function numberOf(option: string, text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !Number.isFinite(number) || number < 0) {
    throw new MillraceError('usage', `${option} ${text} is not a number of 0 or more`);
  }
  return number;
}

function shareOf(option: string, text: string): number {
  const share = numberOf(option, text);
  if (share > 1) throw new MillraceError('usage', `${option} must be from 0 to 1`);
  return share;
}

function durationOf(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new MillraceError('usage', `--daily ${text} is not a duration such as 10s`, { cause: error });
  }
}

function urlOf(text: string): string {
  if (!URL.canParse(text)) throw new MillraceError('usage', `--webhook ${text} is not a URL`);
  return text;
}
