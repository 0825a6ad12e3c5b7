import { finished } from 'node:stream/promises';
import type { Client } from 'pg';
import type { from } from 'pg-copy-streams';
import { MillraceError } from '../../core/errors.ts';
import { onAbort } from '../../lib/abort.ts';
import { LOAD_COLUMN, type Database } from '../../load/database.ts';
import type { TableDefinition } from '../../warehouse/definition.ts';
import { postgres } from '../../warehouse/sql/dialects/postgres.ts';
import { connect, disconnect, nameOf, type Connection } from './connection.ts';
import { CopyText } from './copy-text.ts';
import { toMillraceError } from './failure.ts';

/**
 * Newer servers notice that way that the client of a statement has gone: it would wait for its lock all the same, and hold up
 * the next load.
 */
const LEAVE_ABANDONED = `SELECT set_config(name, '2s', false) FROM pg_settings
  WHERE name = 'client_connection_check_interval'`;

/** PostgreSQL over one connection. */
export class PostgresDatabase implements Database {
  readonly dialect = 'postgres';
  readonly #client: Client;
  readonly #copyFrom: typeof from;
  /** Makes it forget the signal that would end it. */
  #forget: () => void = () => undefined;
  readonly #texts = new Map<string, { text: CopyText; statement: string }>();

  private constructor(client: Client, copyFrom: typeof from) {
    this.#client = client;
    this.#copyFrom = copyFrom;
  }

  /** @param signal ends the opening; what is open stays so */
  static async open(options: Connection, signal: AbortSignal): Promise<PostgresDatabase> {
    const client = await connect(options, signal);
    const forget = onAbort(signal, () => disconnect(client));
    try {
      const schema = postgres.quote(options.schema);
      const exists = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [options.schema]);
      if (exists.rowCount === 0) await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
      await client.query(
        `SET search_path TO ${schema}; SET TIME ZONE 'UTC'; SET client_min_messages TO warning`,
      );
      // Not every system can do it.
      await client.query(LEAVE_ABANDONED).catch(() => undefined);
      const { default: copyStreams } = await import('pg-copy-streams');
      return new PostgresDatabase(client, copyStreams.from);
    } catch (error) {
      disconnect(client);
      throw error;
    } finally {
      forget();
    }
  }

  /**
   * The same for a command: the only one that loads into this schema, until it ends.
   * @param signal ends what runs, too
   * @throws MillraceError database_unavailable, database_refused, database_in_use
   */
  static async openAlone(options: Connection, signal: AbortSignal): Promise<PostgresDatabase> {
    const name = nameOf(options.connectionString);
    let database: PostgresDatabase | null = null;
    try {
      database = await PostgresDatabase.open(options, signal);
      database.endWith(signal);
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

  /** Lets go of the connection once the signal aborts: a server that is stalled is not waited for. */
  endWith(signal: AbortSignal): void {
    this.#forget = onAbort(signal, () => this.destroy());
  }

  /** Lets go of the connection at once: what is not committed is rolled back. */
  destroy(): void {
    disconnect(this.#client);
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined);
    this.#forget();
  }
}
