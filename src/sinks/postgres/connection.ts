import type { Client } from 'pg';
import { z } from 'zod';
import { MillraceError } from '../../core/errors.ts';
import { duration, text } from '../../lib/fields.ts';
import { lackOf } from '../../lib/installed.ts';

const MINIMUM_TIMEOUT = 100;

/** The options about the connection. What the address leaves out is taken from PGPASSWORD, PGSSLMODE and their like. */
export const connectionFields = {
  connectionString: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must be an address such as postgres://user:password@host:5432/database')
    .describe('Address of the database.')
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

/** Loads the driver and connects. @throws MillraceError usage where it is not installed */
export async function connect({ connectionString, timeout }: Connection): Promise<Client> {
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
  await client.connect();
  return client;
}

/** The address without its password, to be named in messages. */
export function nameOf(connectionString: string): string {
  const url = URL.parse(connectionString);
  return url === null
    ? 'postgres'
    : `${url.hostname === '' ? (url.searchParams.get('host') ?? 'localhost') : url.host}${url.pathname}`;
}
