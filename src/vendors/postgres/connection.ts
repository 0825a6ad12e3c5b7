import { z } from 'zod';
import { duration, text } from '../../lib/fields.ts';

const MINIMUM_TIMEOUT = 100;

/** Options of the connection. What the address leaves out comes from PGPASSWORD, PGSSLMODE and the other variables of libpq. */
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

export type Connection = Readonly<z.output<z.ZodObject<typeof connectionFields>>>;

/** Packages for a connection and for loading. */
export const PACKAGES: readonly string[] = ['pg', 'pg-copy-streams'];

/** The address without its password, for error messages. */
export function nameOf(connectionString: string): string {
  const url = URL.parse(connectionString);
  return url === null
    ? 'postgres'
    : `${url.hostname === '' ? (url.searchParams.get('host') ?? 'localhost') : url.host}${url.pathname}`;
}
