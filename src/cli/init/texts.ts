import { dirname } from 'node:path';
import { newSecret } from '../../core/secrets.ts';
import { NAMES, type InitPlan, type InitSink } from './plan.ts';

/** Lines of the config below `sinks:`. */
const SINKS: Readonly<Record<InitSink, string>> = {
  files: `type: files
path: ./data/archive # files close every hour or 128 MiB; \`millrace flush\` closes them now`,
  'event-hubs': `type: event-hubs
connectionString: '\${EVENT_HUBS}' # or fullyQualifiedNamespace, for a managed identity
hub: events # for routes without a hub`,
  pubsub: `type: pubsub
project: '\${PUBSUB_PROJECT}'
topic: events # for routes without a topic
ordering: true`,
  http: `type: http
url: '\${SERVICES_URL}'
secrets: ['\${SERVICES_SECRET}'] # signs each request`,
};

/** A variable in the config. */
export interface Variable {
  readonly name: string;
  readonly about: string;
  /** Null: to be filled in. */
  readonly value: string | null;
}

/** The variables of `.env`. */
export function variablesOf({ sinks }: InitPlan): readonly Variable[] {
  const own: Readonly<Record<InitSink, readonly Variable[]>> = {
    files: [],
    'event-hubs': [
      { name: 'EVENT_HUBS', about: 'Connection string of the Event Hubs namespace.', value: null },
    ],
    pubsub: [{ name: 'PUBSUB_PROJECT', about: 'Google Cloud project of the topic.', value: null }],
    http: [
      { name: 'SERVICES_URL', about: 'Where each event is posted: https://…', value: null },
      {
        name: 'SERVICES_SECRET',
        about: 'Generated; the endpoint needs it to verify requests.',
        value: newSecret(),
      },
    ],
  };
  const about =
    'Generated, to try it out. In production: the signing secret of your endpoint at the service.';
  return [{ name: 'MILLRACE_SECRET', about, value: newSecret() }, ...sinks.flatMap((sink) => own[sink])];
}

/** @param names variables that `.env` sets already */
export function envText(variables: readonly Variable[], names: ReadonlySet<string>): string {
  return variables
    .filter(({ name }) => !names.has(name))
    .map(({ name, about, value }) => `# ${about}\n${name}=${value ?? ''}\n`)
    .join('');
}

export function configText({ sinks, routes, key }: InitPlan): string {
  const sinkLines = sinks.map((sink) => `  ${NAMES[sink]}:\n${SINKS[sink].replaceAll(/^/gm, '    ')}`);
  const routeLines = routes.map(({ match, to }) => `  - match: ${list(match)}\n    to: ${list(to)}`);
  return `# Written by \`millrace init\`. \`millrace check\` shows what it does; a running receiver reads it again on SIGHUP.
# \${NAME} is a variable of the environment, or of .env in the folder that millrace is started in.

signing:
  secrets: ['\${MILLRACE_SECRET}']

sinks:
${sinkLines.join('\n')}
${key === null ? '' : `\nproof:\n  key: ${single(key)} # signs archives; keep it on another disk\n`}
routes: # in order; the first match decides
${routeLines.join('\n')}
`;
}

function list(texts: readonly string[]): string {
  return `[${texts.map(single).join(', ')}]`;
}

/** A single-quoted YAML text. */
function single(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Runs the image that the repository's `deploy/Dockerfile` makes. */
export function composeText({ key }: InitPlan): string {
  const folder = key === null ? null : dirname(key);
  return `# Needs the image: \`docker build --tag millrace --file deploy/Dockerfile .\` in a clone of the repository.
services:
  millrace:
    image: \${MILLRACE_IMAGE:-millrace}
    env_file: .env
    ports: ['8080:8080']
    volumes:
      # The folder: a file that is mounted alone keeps its old content when an editor replaces it.
      - ./config:/etc/millrace:ro
      - data:/var/lib/millrace${folder === null ? '' : `\n      - ${single(`${folder}:${folder}`)}`}
    read_only: true
    tmpfs: [/tmp]
    cap_drop: [ALL]
    security_opt: ['no-new-privileges:true']
    # A core dump would hold events and secrets.
    ulimits: { core: 0 }
    # Longer than shutdown.deadline, so that what is in flight is flushed.
    stop_grace_period: 45s
    restart: unless-stopped

volumes:
  data:
`;
}

/** @param run what starts millrace: Node and its program, absolute */
export function unitText({ key }: InitPlan, folder: string, run: readonly string[]): string {
  const written = key === null ? [folder] : [folder, dirname(key)];
  return `# For systemd: systemctl enable --now ./millrace.service. It runs as the owner of the folder; see User.
[Unit]
Description=millrace, receiver of signed health-data webhooks
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${run.map(quoted).join(' ')} serve
ExecReload=/bin/kill -HUP $MAINPID
Environment=NODE_ENV=production
# .env in this folder is read at the start and at each reload.
WorkingDirectory=${escaped(folder)}
User=${process.getuid?.() ?? 1000}
UMask=0027

Restart=always
RestartSec=2s
# A restart does not help against an invalid config, a second receiver, or a proof that does not verify.
RestartPreventExitStatus=2 4
# Longer than shutdown.deadline, so that what is in flight is flushed.
TimeoutStopSec=45s
KillMode=mixed
LimitNOFILE=65536
# A core dump would hold events and secrets.
LimitCORE=0
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ReadWritePaths=${written.map(quoted).join(' ')}
PrivateTmp=yes
PrivateDevices=yes
RestrictSUIDSGID=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
`;
}

/** Escapes % for systemd, where it begins a specifier. */
function escaped(text: string): string {
  return text.replaceAll('%', '%%');
}

function quoted(text: string): string {
  return `"${escaped(text)
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)}"`;
}
