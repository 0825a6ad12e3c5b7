import type { Client } from 'pg';
import { z } from 'zod';
import { MillraceError } from '../../core/errors.ts';
import { onAbort } from '../../lib/abort.ts';
import { duration, text } from '../../lib/fields.ts';
import { lackOf } from '../../lib/installed.ts';

const MINIMUM_TIMEOUT = 100;

/** The options about the connection. What the address leaves out is taken from PGPASSWORD, PGSSLMODE and their like. */
export const connectionFields = {
  connectionString: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must be an address such as postgres://user:password@host:5432/database')
    .describe('Address of the database, or of a pooler in front of it: PgBouncer may be in transaction mode.')
    .meta({ sensitive: true }),
  schema: text('public', 'Schema of the tables; created if it does not exist.', {
    pattern: '^[a-z_][a-z0-9_]{0,62}$',
    hint: 'must be a name of small letters, digits and underscores',
  }),
  timeout: duration('15s', 'How long connecting may take.', { min: MINIMUM_TIMEOUT }),
};

export interface Connection {
  readonly connectionString: string;
  readonly schema: string;
  readonly timeout: number;
}

/** Packages that a connection and loading need. */
export const PACKAGES: readonly string[] = ['pg', 'pg-copy-streams'];

/**
 * Loads the driver and connects.
 * @param signal ends a connecting that takes long
 * @throws MillraceError usage where the driver is not installed
 */
export async function connect(
  { connectionString, timeout }: Connection,
  signal: AbortSignal,
): Promise<Client> {
  const lack = lackOf(PACKAGES);
  if (lack !== null) throw new MillraceError('usage', `postgres ${lack}`);
  const { default: pg } = await import('pg');
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: timeout,
    application_name: 'millrace',
    keepAlive: true,
  });
  // Told of it by the next statement; without a listener it would end the process.
  client.on('error', () => undefined);
  const connected = client.connect();
  const forget = onAbort(signal, () => disconnect(client));
  try {
    await connected;
  } finally {
    forget();
  }
  return client;
}

/** Ends a connection at once, whatever runs on it and whether or not the server answers. */
export function disconnect(client: Client): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } };
  connection.stream.destroy();
}

/** The address without its password, to be named in messages. */
export function nameOf(connectionString: string): string {
  const url = URL.parse(connectionString);
  return url === null
    ? 'postgres'
    : `${url.hostname === '' ? (url.searchParams.get('host') ?? 'localhost') : url.host}${url.pathname}`;
}
