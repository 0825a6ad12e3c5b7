import type { PubSub } from '@google-cloud/pubsub';
import { z } from 'zod';
import { optionalText } from '../../lib/fields.ts';

/**
 * The options about the connection, for a sink and a source alike. Credentials are not among them: they are found as
 * Google's libraries find them (GOOGLE_APPLICATION_CREDENTIALS, workload identity, the metadata server). With
 * PUBSUB_EMULATOR_HOST set there are none, and none are looked for.
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

export interface Connection {
  readonly project: string;
  readonly endpoint: string | null;
}

/** Packages that a connection needs. */
export const PACKAGES: readonly string[] = ['@google-cloud/pubsub'];

/** Loads the SDK and points it at the endpoint, PUBSUB_EMULATOR_HOST or Google. Connects nothing yet. */
export async function createPubSub({ project, endpoint }: Connection): Promise<PubSub> {
  const { PubSub: Client } = await import('@google-cloud/pubsub');
  const address = endpoint === null ? {} : { apiEndpoint: endpoint, emulatorMode: isPlain(endpoint) };
  const options = { projectId: project, ...address, ...CHANNEL };
  const client = new Client(options);
  return client.isEmulator ? new Client({ ...options, ...NO_CREDENTIALS }) : client;
}

/** Whether an address is spoken to without TLS and credentials. */
function isPlain(endpoint: string): boolean {
  return /^(http:\/\/|(localhost|127\.0\.0\.1)(:|\/*$))/.test(endpoint);
}

const CHANNEL = {
  'grpc.max_reconnect_backoff_ms': 10_000,
  // Finds out about a connection that has silently died.
  'grpc.keepalive_time_ms': 60_000,
  'grpc.keepalive_timeout_ms': 10_000,
};

/** Keeps the SDK from asking credentials which domain they belong to: on a network without Google that takes long. */
const NO_CREDENTIALS = { clientOptions: { universeDomain: 'googleapis.com' } };
