import type { PubSub } from '@google-cloud/pubsub';
import { z } from 'zod';
import { optionalText } from '../../lib/fields.ts';

/**
 * Options of the connection, the same for a sink and a source. Google's libraries find the credentials
 * (GOOGLE_APPLICATION_CREDENTIALS, workload identity, the metadata server); with PUBSUB_EMULATOR_HOST there are none.
 */
export const connectionFields = {
  project: z
    .string()
    .regex(/^[a-z][a-z0-9:.-]*[a-z0-9]$/, 'must be a project id such as acme-health')
    .describe("The project's id."),
  endpoint: optionalText(
    "An address other than Google's default, such as a regional one. It is used with TLS and credentials, unless it begins with `http://` or is on this machine.",
    {
      pattern: '^(https?://)?[\\w.-]+(:\\d+)?/*$',
      hint: 'must be an address such as europe-west1-pubsub.googleapis.com',
    },
  ),
};

export type Connection = Readonly<z.output<z.ZodObject<typeof connectionFields>>>;

/** Packages that a connection needs. */
export const PACKAGES: readonly string[] = ['@google-cloud/pubsub'];

/** The SDK's client for the endpoint, PUBSUB_EMULATOR_HOST or Google. Connects nothing yet. */
export async function createPubSub({ project, endpoint }: Connection): Promise<PubSub> {
  const { PubSub: Client } = await import('@google-cloud/pubsub');
  const address = endpoint === null ? {} : { apiEndpoint: endpoint, emulatorMode: isPlain(endpoint) };
  const options = { projectId: project, ...address, ...CHANNEL };
  const client = new Client(options);
  return client.isEmulator ? new Client({ ...options, ...NO_CREDENTIALS }) : client;
}

/** Whether an address is used without TLS and credentials. */
function isPlain(endpoint: string): boolean {
  return /^(http:\/\/|(localhost|127\.0\.0\.1)(:|\/*$))/.test(endpoint);
}

const CHANNEL = {
  'grpc.max_reconnect_backoff_ms': 10_000,
  // Detects a connection that was lost without an error.
  'grpc.keepalive_time_ms': 60_000,
  'grpc.keepalive_timeout_ms': 10_000,
};

/** Stops the SDK from asking the credentials for their domain, which takes long in a network without Google. */
const NO_CREDENTIALS = { clientOptions: { universeDomain: 'googleapis.com' } };
