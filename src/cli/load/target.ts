import { messageOf, MillraceError } from '../../core/errors.ts';
import type { Database } from '../../tables/database/database.ts';
import { usageError } from '../io.ts';

/** Milliseconds until a database that does not answer counts as unreachable. */
const TIMEOUT_MS = 15_000;

/** The database to load into. */
export interface Target {
  /** Address without a password. */
  readonly name: string;
  /** @param signal ends the opening and, in PostgreSQL, running statements */
  open(signal: AbortSignal): Promise<Database>;
  /** The same beside a load, to read only; nothing is made that is missing. */
  openToRead(signal: AbortSignal): Promise<Database>;
  /** The error to report for an error of the database. */
  explain(error: unknown): unknown;
}

/**
 * @param address `postgres://…` or `duckdb:FILE`
 * @param schema of PostgreSQL
 * @throws MillraceError usage
 */
export async function targetOf(address: string, schema: string): Promise<Target> {
  if (/^postgres(ql)?:\/\//.test(address)) {
    const { PostgresDatabase } = await import('../../sinks/postgres/database.ts');
    const { nameOf } = await import('../../vendors/postgres/connection.ts');
    const { toMillraceError } = await import('../../vendors/postgres/failure.ts');
    const name = nameOf(address);
    const connection = { connectionString: address, schema, timeout: TIMEOUT_MS };
    return {
      name,
      open: (signal) => PostgresDatabase.openAlone(connection, signal),
      openToRead: async (signal) => {
        const database = await PostgresDatabase.open(connection, signal);
        database.endWith(signal);
        return database;
      },
      explain: (error) => toMillraceError(name, error),
    };
  }
  const [, file] = /^duckdb:(.+)$/.exec(address) ?? [];
  if (file === undefined)
    throw usageError(
      '--to must be postgres://user@host:5432/database or duckdb:FILE (other warehouses: docs/warehouse.md)',
    );
  const { DuckDBDatabase } = await import('../../export/load/duckdb.ts');
  return {
    name: file,
    open: () => DuckDBDatabase.open(file),
    openToRead: () => DuckDBDatabase.open(file, 'read'),
    explain: (error) =>
      error instanceof MillraceError
        ? error
        : new MillraceError('database_refused', `${file}: ${messageOf(error)}`, { cause: error }),
  };
}
