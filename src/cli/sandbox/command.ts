import type { Command } from 'commander';
import { splitSecrets } from '../../core/secrets.ts';
import { untilAborted } from '../../lib/abort.ts';
import { parseDuration } from '../../lib/units.ts';
import type { SandboxOptions } from '../../sandbox/options.ts';
import { startSandbox, type Sandbox } from '../../sandbox/start.ts';
import { printResult, usageError, type Io } from '../io.ts';
import { createLog } from '../log.ts';
import {
  commandOf,
  httpUrl,
  number,
  oneOf,
  type OptionsOf,
  readBy,
  repeated,
  special,
  textOr,
  wholeNumber,
} from '../options.ts';
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

A stand-in of the whole service with made-up data. The same seed gives the same users and meals. Its address lists the operations.
With --speed 1000 an hour of throttles, pulls, grace periods and webhook retries takes 3.6 seconds.

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

/** Their names are those of the stand-in's options. */
const FAULTS = {
  '--failing-users <n>': readBy(wholeNumber(), 'users whose historical pulls fail', '0'),
  '--retrying-users <n>': readBy(wholeNumber(), 'users whose historical pulls retry first', '0'),
  '--unconnected-users <n>': readBy(wholeNumber(), 'users without a connection to any provider', '0'),
  '--left-out-users <n>': readBy(wholeNumber(), 'users whose triggers start no pull', '0'),
  '--unpulled-users <n>': readBy(wholeNumber(), 'users whose meals are not pulled', '0'),
  '--stuck-ops <n>': readBy(wholeNumber(), 'bulk operations that never start: the first', '0'),
  '--aborted-ops <n>': readBy(wholeNumber(), 'bulk operations that are aborted halfway: the next', '0'),
  '--failed-ops <n>': readBy(wholeNumber(), 'bulk operations that fail halfway: the next', '0'),
  '--rate-429 <share>': readBy(number(0, 1), 'share of requests answered with 429', '0'),
  '--drop-connections <share>': readBy(number(0, 1), 'share of requests whose connection is cut', '0'),
};

const OPTIONS = {
  '--host <host>': textOr('127.0.0.1', 'address to listen on'),
  '--port <n>': readBy(wholeNumber(), 'port to listen on; 0 takes a free one', '8090'),
  '--users <n>': readBy(wholeNumber(), 'users at the start', '100'),
  '--providers <names>': 'names of the providers, with commas between (default: sixteen made-up ones)',
  '--meals-per-day <n>': readBy(wholeNumber(), 'meals of a user on a day', '3'),
  '--days <n>': readBy(wholeNumber(), 'days with data', '180'),
  '--since <date>': textOr('2026-01-01', 'first day with data'),
  '--seed <s>': textOr('made-up', 'seed of the generated data'),
  '--speed <x>': readBy(number(), 'how many times faster than real time it runs', '1'),
  '--after-pull': 'meals can be read only after a historical pull',
  '--plan <plan>': oneOf(
    ['scale', 'launch'],
    'plan of the team; management and pipelines are part of scale only',
    'scale',
  ),
  '--beta <access>': oneOf(
    ['open', 'closed'],
    'whether the team may use what is in closed beta: lab report parsing',
    'open',
  ),
  '--partial-results': 'send events for partial lab results too',
  '--unknown-values':
    'give values too that are not documented: statuses of orders, interpretations, providers',
  '--webhook <url>': repeated('send events there', httpUrl),
  '--secret-env <name>': textOr('MILLRACE_SECRET', 'variable with the secret that events are signed with'),
  '--secret <secret>': special<string | undefined>('', (option) => option.hideHelp()),
  '--daily <duration>': readBy(parseDuration, 'how often to send a daily.data event, such as 10s'),
  '--etl <file>': 'publish events to Event Hubs and Pub/Sub too, as the YAML file says',
  '--json': 'print one JSON object',
  ...FAULTS,
};
type Options = OptionsOf<typeof OPTIONS>;

export function sandboxCommand(io: Io): Command {
  return commandOf('sandbox', OPTIONS, HELP)
    .description('a stand-in of the whole service, with made-up data, for development and tests')
    .action(async (options: Options) => {
      const secret = secretFrom(io, options);
      const log = createLog(io, { level: 'info' });
      const isOff = options.etl !== undefined && options.plan !== 'scale';
      if (isOff) log.warn({ plan: options.plan }, 'pipelines are off: they are part of the scale plan');
      const pipelines =
        options.etl === undefined || isOff ? null : await openPipelines(readEtl(options.etl, io.env), log);
      const sandbox = await startSandbox({ ...optionsOf(options, secret), pipelines });
      log.info({ url: sandbox.url, users: options.users, seed: options.seed }, 'listening');
      const shown = describe(sandbox, secret);
      const lines = Object.entries(shown).map(([name, value]) => `${name.padEnd(22)} ${String(value)}`);
      printResult(io, options, shown, ...lines);
      await untilAborted(io.signal);
      const unpublished = (await pipelines?.close()) ?? 0;
      await sandbox.stop();
      if (unpublished > 0) log.warn({ unpublished }, 'messages were not published before the stop');
      log.info('stopped');
    });
}

/** Null without a secret in the environment: the stand-in makes one. @throws MillraceError usage */
function secretFrom(io: Io, { secret, secretEnv }: Options): string | null {
  if (secret !== undefined)
    throw usageError('--secret can be read in the list of processes: use --secret-env');
  return splitSecrets(io.env[secretEnv] ?? '')[0] ?? null;
}

function optionsOf(options: Options, secret: string | null): SandboxOptions {
  const { host, port, users, mealsPerDay, days, since, seed, speed, afterPull, webhook, daily, providers } =
    options;
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
    unknownValues: options.unknownValues === true,
    features: { parsing: options.beta === 'open', partialResults: options.partialResults === true },
    webhooks: webhook.map((url) => (secret === null ? { url } : { url, secret })),
    dailyEveryMs: daily ?? 0,
    providerNames: providers?.split(',').map((name) => name.trim()) ?? null,
    faults: options,
  };
}

/** Shows the keys, which guard made-up data only, and a signing secret only when the stand-in has made it. */
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
