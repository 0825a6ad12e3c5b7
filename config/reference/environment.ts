/** Variables that are no key of the config, and who reads them. Those of keys stand beside them in the config's reference. */
export const ENVIRONMENT = {
  MILLRACE_CONFIG: 'Config file for commands without `--config`; default `config/millrace.yaml`.',
  MILLRACE_SECRET:
    'Secret that `send` and `sandbox` sign with, of several the first; `send` takes one from the config where this is not set. The receiver reads it through `${MILLRACE_SECRET}` in `signing.secrets`.',
  MILLRACE_SERVICE_BASE_URL: 'Address of the service for `backfill` and `pull`, also without a config.',
  MILLRACE_SERVICE_API_KEY: 'Team API key for them.',
  MILLRACE_SERVICE_API_KEY_HEADER: 'Header that carries it.',
  MILLRACE_SERVICE_MANAGEMENT_KEY: 'Org or Team Management Key for `webhooks`, also without a config.',
  MILLRACE_MASTER_KEY:
    'Master key of sealed archives, for commands that are given `--keys`; `--master-key-env` names another.',
  MILLRACE_PSEUDONYM_KEY:
    'Secret key of the pseudonyms of `replay --pseudonymise` and `fixture`; `--key-env` names another.',
  PUBSUB_EMULATOR_HOST: 'Connects Pub/Sub sinks and sources to an emulator, such as `127.0.0.1:8085`.',
  GOOGLE_APPLICATION_CREDENTIALS:
    'File with credentials for Pub/Sub, if the machine has none; read by Google’s library.',
  AZURE_CLIENT_ID: 'With `AZURE_TENANT_ID` and others: the identity for Event Hubs; read by Azure’s library.',
  AWS_ENDPOINT_URL_S3:
    'Address of an S3 store, with `AWS_REGION`, `AWS_PROFILE`, `AWS_ACCESS_KEY_ID` and others; read by the AWS SDK.',
  AZURE_STORAGE_CONNECTION_STRING: 'Storage account of `azblob://`, when `storage.azblob` names none.',
  AZURE_STORAGE_ACCOUNT:
    'The same, by its name; credentials come from `AZURE_STORAGE_KEY` or Azure’s default chain.',
  AZURE_STORAGE_KEY: 'Key of that account.',
  STORAGE_EMULATOR_HOST: 'Connects `gs://` to an emulator, when `storage.gs` names no endpoint.',
  MILLRACE_IMAGE: 'Image that the compose.yaml of `init` runs; read by Docker Compose.',
  JOB_COMPLETION_INDEX:
    'The number of the shard for `backfill --shard job/N`; set by Kubernetes in an indexed Job.',
  OTEL_EXPORTER_OTLP_ENDPOINT:
    'Collector that traces are exported to, with `OTEL_TRACES_SAMPLER` and others; read by the OpenTelemetry SDK.',
  OTEL_TRACES_SAMPLER:
    'Which events are traced: `parentbased_traceidratio` with the share in OTEL_TRACES_SAMPLER_ARG (0 to 1), `always_on`, …',
  OTEL_TRACES_SAMPLER_ARG: 'Its share, such as 0.01.',
  OTEL_BSP_MAX_QUEUE_SIZE:
    'Spans that may wait to be exported; what comes beyond is dropped, and the log says so.',
  OTEL_SDK_DISABLED: '`true`: no traces.',
  OTEL_TRACES_EXPORTER: '`none`: no traces.',
  TMPDIR: 'Folder for temporary files: the ids of `reconcile`; the folder of `demo`.',
  NO_COLOR: 'Output is not coloured; without it, it is on a terminal.',
  FORCE_COLOR:
    'Output is coloured even where it goes to a file or a pipe; `0` is never. Stronger than NO_COLOR.',
  TERM: '`dumb`: a terminal that shows no colours.',
  npm_lifecycle_event: 'Set by npm in scripts: `init` and `dev` then print commands that npm runs.',
} as const satisfies Record<string, string>;
