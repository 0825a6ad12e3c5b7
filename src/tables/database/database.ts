import type { TableDefinition } from '../definition.ts';
import type { Dialect } from '../sql/dialects/dialect.ts';
import type { DialectName } from '../sql/dialects/registry.ts';

/**
 * What loading needs of a database. One connection: statements run one after another, in the session's transaction. Behind a
 * pooler each transaction has another session, so statements name their tables with the schema and rely on nothing older.
 * Statements are written so that PostgreSQL and DuckDB both take them; where they cannot be, `dialect` decides.
 */
export interface Database {
  readonly dialect: DialectName & ('postgres' | 'duckdb');
  /** How its statements are written. */
  readonly sql: Dialect;
  begin(): Promise<void>;
  /** Makes the schema of its tables where it is not there. Others wait with tables of theirs until the transaction ends. */
  createSchema(): Promise<void>;
  /** Several statements at once, without values. */
  run(sql: string): Promise<void>;
  /** @param values stand for `$1`, `$2`, … */
  query(sql: string, values?: readonly (string | number | null)[]): Promise<readonly (readonly unknown[])[]>;
  /**
   * Adds rows to a table, or nothing where the database does not take one of them.
   * @param lines as the shaper writes them; the caller's again once the promise resolves
   * @param load number of the load, which each row carries as `_load`
   * @returns why it does not, without values; null when they are added
   * @throws RowsRefused where this has ended the transaction
   */
  tryAppend(table: TableDefinition, lines: Buffer, load: number): Promise<string | null>;
  close(): Promise<void>;
}

/** Rows were refused, and the transaction with them. Run again, it keeps what is taken. */
export class RowsRefused extends Error {}

/** Column that every loaded table has beside its own: the load that a row came with. */
export const LOAD_COLUMN = '_load';

/** Runs `work` in a transaction: all of it is there in the end, or nothing. */
export async function inTransaction<T>(database: Database, work: () => Promise<T>): Promise<T> {
  try {
    await database.begin();
    const result = await work();
    await database.run('COMMIT');
    return result;
  } catch (error) {
    // A connection that is gone has rolled back by itself.
    await database.run('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
