import { Command, Option } from 'commander';
import { splitSecrets } from '../../core/secrets.ts';
import { untilAborted } from '../../lib/abort.ts';
import { parseDuration } from '../../lib/units.ts';
import type { FaultOptions } from '../../sandbox/faults.ts';
import type { SandboxOptions } from '../../sandbox/options.ts';
import { startSandbox, type Sandbox } from '../../sandbox/start.ts';
import { print, usageError, type Io } from '../io.ts';
import { createLog } from '../log.ts';
import { collect, httpUrl, number, option, readAs, wholeNumber } from '../options.ts';
import { readEtl } from './etl.ts';
import { openPipelines } from './pipelines.ts';

const HELP = `
Examples:
  millrace sandbox
  millrace sandbox --users 1000 --seed demo --speed 1000
  MILLRACE_SECRET=whsec_… millrace sandbox --webhook http://127.0.0.1:8080/webhooks --daily 10s
  millrace sandbox --etl etl.yaml --daily 1s
  millrace sandbox --plan launch --beta closed --partial-results
  millrace sandbox --failing-users 3 --retrying-users 5 --rate-429 0.05 --drop-connections 0.01

A stand-in of the whole service with made-up data: the same seed gives the same users and meals. Its address lists the
operations. With --speed 1000 an hour of throttles, pulls, grace periods and webhook retries takes 3.6 seconds.

--etl FILE publishes the events to Event Hubs and Pub/Sub as the service's pipelines do; \${NAME} is a variable:
  destinations:
    hubs:
      type: event-hubs
      connectionString: \${HUBS}
      hub: events                       # for events that no route matches
      routes: [{ event_type_prefix: labtest., event_hub: labtest-events }]   # or event_type_regex; the first decides
      blobs: ./large-events             # folder of bodies above 1 MiB
    topics: { type: pubsub, project: acme-health, topic: events, ordering: true, metadata: underscores }

Events are signed with $MILLRACE_SECRET, or the variable that --secret-env names; without one, with a new secret.
Prints its address and keys; logs a JSON line with "msg":"listening" and the actual URL to stderr. SIGTERM stops it.`;

const FAULTS = {
  failingUsers: ['--failing-users <n>', 'users whose historical pulls fail', wholeNumber()],
  retryingUsers: ['--retrying-users <n>', 'users whose historical pulls retry first', wholeNumber()],
  unconnectedUsers: ['--unconnected-users <n>', 'users without a connection to any provider', wholeNumber()],
  leftOutUsers: ['--left-out-users <n>', 'users whose triggers start no pull', wholeNumber()],
  unpulledUsers: ['--unpulled-users <n>', 'users whose meals are not pulled', wholeNumber()],
  stuckOps: ['--stuck-ops <n>', 'bulk operations that never start: the first', wholeNumber()],
  abortedOps: ['--aborted-ops <n>', 'bulk operations that are aborted halfway: the next', wholeNumber()],
  failedOps: ['--failed-ops <n>', 'bulk operations that fail halfway: the next', wholeNumber()],
  rate429: ['--rate-429 <share>', 'share of requests answered with 429', number(0, 1)],
  dropConnections: ['--drop-connections <share>', 'share of requests whose connection is cut', number(0, 1)],
} as const satisfies Partial<
  Record<keyof FaultOptions, readonly [flags: string, what: string, read: (text: string) => number]>
>;

interface Options extends Required<Pick<FaultOptions, keyof typeof FAULTS>> {
  readonly host: string;
  readonly port: number;
  readonly users: number;
  readonly mealsPerDay: number;
  readonly days: number;
  readonly since: string;
  readonly seed: string;
  readonly speed: number;
  readonly afterPull?: boolean;
  readonly webhook: readonly string[];
  readonly secretEnv: string;
  readonly secret?: string;
  readonly daily?: number;
  readonly etl?: string;
  readonly plan: 'scale' | 'launch';
  readonly beta: 'open' | 'closed';
  readonly partialResults?: boolean;
  readonly json?: boolean;
}

export function sandboxCommand(io: Io): Command {
  const command = new Command('sandbox')
    .description('a stand-in of the whole service, with made-up data, for development and tests')
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .addOption(option('--port <n>', 'port to listen on; 0 takes a free one', wholeNumber(), '8090'))
    .addOption(option('--users <n>', 'users at the start', wholeNumber(), '100'))
    .addOption(option('--meals-per-day <n>', 'meals of a user on a day', wholeNumber(), '3'))
    .addOption(option('--days <n>', 'days with data', wholeNumber(), '180'))
    .option('--since <date>', 'first day with data', '2026-01-01')
    .option('--seed <s>', 'seed of the generated data', 'made-up')
    .addOption(option('--speed <x>', 'how many times faster than real time it runs', number(), '1'))
    .option('--after-pull', 'meals can be read only after a historical pull')
    .addOption(
      new Option('--plan <plan>', 'plan of the team; management and pipelines are part of scale only')
        .choices(['scale', 'launch'])
        .default('scale'),
    )
    .addOption(
      new Option('--beta <access>', 'whether the team may use what is in closed beta: lab report parsing')
        .choices(['open', 'closed'])
        .default('open'),
    )
    .option('--partial-results', 'send events for partial lab results too')
    .option('--webhook <url>', 'send events there; may be repeated', collect, [])
    .option('--secret-env <name>', 'variable with the secret that events are signed with', 'MILLRACE_SECRET')
    .addOption(new Option('--secret <secret>').hideHelp())
    .addOption(
      option('--daily <duration>', 'how often to send a daily.data event, such as 10s', parseDuration),
    )
    .option('--etl <file>', 'publish events to Event Hubs and Pub/Sub too, as the YAML file says')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      const secret = secretFrom(io, options);
      const log = createLog(io, { level: 'info' });
      const pipelines =
        options.etl === undefined ? null : await openPipelines(readEtl(options.etl, io.env), log);
      const sandbox = await startSandbox({
        ...optionsOf(options, secret),
        ...(pipelines === null ? {} : { pipelines }),
      });
      log.info({ url: sandbox.url, users: options.users, seed: options.seed }, 'listening');
      const shown = describe(sandbox, secret);
      if (options.json === true) print(io, JSON.stringify(shown));
      else
        for (const [name, value] of Object.entries(shown)) print(io, `${name.padEnd(22)} ${String(value)}`);
      await untilAborted(io.signal);
      const unpublished = (await pipelines?.close()) ?? 0;
      await sandbox.stop();
      if (unpublished > 0) log.warn({ unpublished }, 'messages that no pipeline took were given up');
      log.info('stopped');
    });
  for (const [flags, what, read] of Object.values(FAULTS)) command.addOption(option(flags, what, read, '0'));
  return command;
}

/** Null for a new one. @throws MillraceError usage */
function secretFrom(io: Io, { secret, secretEnv }: Options): string | null {
  if (secret !== undefined)
    throw usageError('--secret can be read in the list of processes: use --secret-env');
  return splitSecrets(io.env[secretEnv] ?? '')[0] ?? null;
}

function optionsOf(options: Options, secret: string | null): SandboxOptions {
  const { host, port, users, mealsPerDay, days, since, seed, speed, afterPull, webhook, daily } = options;
  const faults = Object.keys(FAULTS) as (keyof typeof FAULTS)[];
  return {
    host,
    port,
    users,
    mealsPerDay,
    days,
    since,
    seed,
    speed,
    data: afterPull === true ? 'after_pull' : 'ready',
    plan: options.plan,
    features: { parsing: options.beta === 'open', partialResults: options.partialResults === true },
    webhooks: webhook.map((text) => {
      const url = readAs('--webhook', text, httpUrl);
      return secret === null ? { url } : { url, secret };
    }),
    ...(daily === undefined ? {} : { dailyEveryMs: daily }),
    faults: Object.fromEntries(faults.map((name) => [name, options[name]])),
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
