import { finished } from 'node:stream/promises';
import type { Client } from 'pg';
import type { from } from 'pg-copy-streams';
import { MillraceError } from '../../core/errors.ts';
import { LOAD_COLUMN, type Database } from '../../load/database.ts';
import type { TableDefinition } from '../../warehouse/definition.ts';
import { postgres } from '../../warehouse/sql/dialects/postgres.ts';
import { connect, nameOf, type Connection } from './connection.ts';
import { CopyText } from './copy-text.ts';
import { toMillraceError } from './failure.ts';

/** PostgreSQL over one connection. */
export class PostgresDatabase implements Database {
  readonly dialect = 'postgres';
  readonly #client: Client;
  readonly #copyFrom: typeof from;
  readonly #texts = new Map<string, { text: CopyText; statement: string }>();

  private constructor(client: Client, copyFrom: typeof from) {
    this.#client = client;
    this.#copyFrom = copyFrom;
  }

  static async open(options: Connection): Promise<PostgresDatabase> {
    const client = await connect(options);
    try {
      const schema = postgres.quote(options.schema);
      const exists = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [options.schema]);
      if (exists.rowCount === 0) await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
      await client.query(
        `SET search_path TO ${schema}; SET TIME ZONE 'UTC'; SET client_min_messages TO warning`,
      );
      const { default: copyStreams } = await import('pg-copy-streams');
      return new PostgresDatabase(client, copyStreams.from);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
  }

  /**
   * The same for a command: the only one that loads into this schema, until it ends.
   * @throws MillraceError database_unavailable, database_refused, database_in_use
   */
  static async openAlone(options: Connection): Promise<PostgresDatabase> {
    const name = nameOf(options.connectionString);
    let database: PostgresDatabase | null = null;
    try {
      database = await PostgresDatabase.open(options);
      const [row] = await database.query(
        `SELECT pg_try_advisory_lock(hashtextextended('millrace load ' || current_schema(), 0))`,
      );
      if (row?.[0] !== true)
        throw new MillraceError(
          'database_in_use',
          `${name}, schema ${options.schema}: wait until it is done`,
        );
      return database;
    } catch (error) {
      await database?.close();
      throw toMillraceError(name, error);
    }
  }

  async run(sql: string): Promise<void> {
    await this.#client.query(sql);
  }

  async query(sql: string, values: readonly (string | number)[] = []): Promise<unknown[][]> {
    const result = await this.#client.query<unknown[]>({ text: sql, values: [...values], rowMode: 'array' });
    return result.rows;
  }

  async append(table: TableDefinition, lines: Buffer, load: number): Promise<void> {
    let made = this.#texts.get(table.name);
    if (made === undefined) {
      const text = new CopyText(table, LOAD_COLUMN);
      const columns = text.columns.map((name) => postgres.quote(name)).join(', ');
      made = { text, statement: `COPY ${postgres.quote(table.name)} (${columns}) FROM STDIN` };
      this.#texts.set(table.name, made);
    }
    // Before the COPY begins: one that is begun and gets no end holds up the ROLLBACK.
    const rows = made.text.of(lines, String(load));
    const stream = this.#client.query(this.#copyFrom(made.statement));
    stream.end(rows);
    await finished(stream);
  }

  /** Lets go of the connection at once: what is not committed is rolled back. */
  destroy(): void {
    const { connection } = this.#client as unknown as { connection: { stream: { destroy(): void } } };
    connection.stream.destroy();
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined);
  }
}
