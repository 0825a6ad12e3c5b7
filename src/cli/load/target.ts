import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Database } from '../../load/database.ts';
import { usageError } from '../io.ts';

/** Milliseconds until a database that does not answer counts as unreachable. */
const TIMEOUT = 15_000;

/** The database that is loaded into. */
export interface Target {
  /** As it may be shown: without a password. */
  readonly name: string;
  /** @param signal ends the opening and, where it can, what runs then */
  open(signal: AbortSignal): Promise<Database>;
  /** What an error of it means. */
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
    const { nameOf } = await import('../../sinks/postgres/connection.ts');
    const { toMillraceError } = await import('../../sinks/postgres/failure.ts');
    const name = nameOf(address);
    return {
      name,
      open: (signal) =>
        PostgresDatabase.openAlone({ connectionString: address, schema, timeout: TIMEOUT }, signal),
      explain: (error) => toMillraceError(name, error),
    };
  }
  const [, file] = /^duckdb:(.+)$/.exec(address) ?? [];
  if (file === undefined)
    throw usageError(
      '--to must be postgres://user@host:5432/database or duckdb:FILE (for BigQuery see To BigQuery in deploy/README.md)',
    );
  const { DuckDBDatabase } = await import('../../load/duckdb.ts');
  return {
    name: file,
    open: () => DuckDBDatabase.open(file),
    explain: (error) =>
      error instanceof MillraceError
        ? error
        : new MillraceError('database_refused', `${file}: ${messageOf(error)}`, { cause: error }),
  };
}
