import type { TableDefinition } from '../definition.ts';
import type { RowTarget } from '../shape/write-rows.ts';
import type { Dialect } from '../sql/dialects/dialect.ts';
import type { DialectName } from '../sql/dialects/registry.ts';

/**
 * A connection to a database; statements run one after another. Behind a pooler each transaction has another session, so statements
 * name tables with their schema. Both PostgreSQL and DuckDB take most statements; `dialect` decides about others.
 */
export interface Database {
  readonly dialect: DialectName & ('postgres' | 'duckdb');
  readonly sql: Dialect;
  begin(): Promise<void>;
  /** Makes the schema of the tables if it is missing. Other loads wait until the transaction ends. */
  createSchema(): Promise<void>;
  /** Runs several statements, without values. */
  run(sql: string): Promise<void>;
  /** @param values stand for `$1`, `$2`, … */
  query(sql: string, values?: readonly (string | number | null)[]): Promise<readonly (readonly unknown[])[]>;
  gather(table: TableDefinition): GatheredRows;
  /**
   * Adds rows of a batch to their table, or none if the database refuses one of them.
   * @param load number of the load, which each row carries as `_load`
   * @param from index of the first row
   * @param to index after the last row
   * @returns why the database refuses them, without values; null when they are added
   * @throws RowsRefused when the refusal has ended the transaction
   */
  tryAppend(batch: RowBatch, load: number, from: number, to: number): Promise<string | null>;
  close(): Promise<void>;
}

/** Rows of one table in the form in which a database takes them. */
export interface GatheredRows extends RowTarget {
  readonly definition: TableDefinition;
  readonly rows: number;
  take(): RowBatch;
}

/** Rows of one table that are in no database yet. */
export interface RowBatch {
  readonly definition: TableDefinition;
  readonly rows: number;
  readonly bytes: Buffer;
}

/** Rows were refused, which has ended the transaction. It has to be repeated, and adds the other rows then. */
export class RowsRefused extends Error {}

/** Additional column of every loaded table: the load of a row. */
export const LOAD_COLUMN = '_load';

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
