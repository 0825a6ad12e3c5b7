import { finished } from 'node:stream/promises';
import type { Client } from 'pg';
import type { from } from 'pg-copy-streams';
import { MillraceError } from '../../core/errors.ts';
import { onAbort } from '../../lib/abort.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { lackOf } from '../../lib/installed.ts';
import {
  type Database,
  type GatheredRows,
  LOAD_COLUMN,
  type RowBatch,
} from '../../tables/database/database.ts';
import type { TableDefinition } from '../../tables/definition.ts';
import { RowLines } from '../../tables/shape/row-lines.ts';
import { type Dialect, tableName } from '../../tables/sql/dialects/dialect.ts';
import { postgres } from '../../tables/sql/dialects/postgres.ts';
import { nameOf, PACKAGES, type Connection } from '../../vendors/postgres/connection.ts';
import { CopyText } from './copy-text.ts';
import { refusalOf, toMillraceError } from '../../vendors/postgres/failure.ts';
import { LoadLock } from './load-lock.ts';

/**
 * Ends statements whose client has gone: they would still wait for their lock, and block the next load. Only newer servers can do
 * that, and not on every system.
 */
const END_ABANDONED = `SELECT set_config(name, '2s', true) FROM pg_catalog.pg_settings
  WHERE name = 'client_connection_check_interval'`;

/**
 * Settings that another program may have left in a session of the pool: the first can lose confirmed rows, the others end a long
 * load.
 */
const RESET_SETTINGS = ['synchronous_commit', 'statement_timeout', 'idle_in_transaction_session_timeout'];

const SAVEPOINT = '_millrace_rows';
const LINE_FEED = 10;

/** PostgreSQL over one connection. */
export class PostgresDatabase implements Database {
  readonly dialect = 'postgres';
  readonly sql: Dialect & { readonly schema: string };
  readonly #client: Client;
  readonly #copyFrom: typeof from;
  /** Removes the listener of `endWith`. */
  #forget: () => void = () => undefined;
  #lock: LoadLock | null = null;
  #isBeginning = false;
  /** Statements that begin a transaction. */
  readonly #begin: string;
  readonly #texts = new Map<string, { text: CopyText; statement: string }>();

  private constructor(client: Client, copyFrom: typeof from, schema: string, endsAbandoned: boolean) {
    this.#client = client;
    this.#copyFrom = copyFrom;
    this.sql = { ...postgres, schema };
    // Behind a pooler other programs use the session too: no setting may outlive the transaction.
    this.#begin = [
      'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
      // Statements name the schema; triggers that users have made may not.
      `SET LOCAL search_path TO ${postgres.quote(schema)}`,
      `SET LOCAL TIME ZONE 'UTC'`,
      'SET LOCAL client_min_messages TO warning',
      `SET LOCAL client_encoding TO 'UTF8'`,
      ...RESET_SETTINGS.map((name) => `SET LOCAL ${name} TO DEFAULT`),
      ...(endsAbandoned ? [`SET LOCAL client_connection_check_interval TO '2s'`] : []),
    ].join(';');
  }

  /**
   * Loads the driver and connects.
   * @param signal aborts the opening only
   * @throws MillraceError usage when the driver is not installed
   */
  static async open(options: Connection, signal: AbortSignal): Promise<PostgresDatabase> {
    const lack = lackOf(PACKAGES);
    if (lack !== null) throw new MillraceError('usage', `postgres ${lack}`);
    const [{ default: pg }, { default: copyStreams }] = await Promise.all([
      import('pg'),
      import('pg-copy-streams'),
    ]);
    const client = new pg.Client({
      connectionString: options.connectionString,
      connectionTimeoutMillis: options.timeout,
      application_name: 'millrace',
      keepAlive: true,
    });
    // Without a listener it would end the process; the next statement fails.
    client.on('error', () => undefined);
    const connected = client.connect();
    const forget = onAbort(signal, () => disconnect(client));
    try {
      await connected;
      const set = await client.query(END_ABANDONED).catch(() => ({ rowCount: 0 }));
      return new PostgresDatabase(client, copyStreams.from, options.schema, set.rowCount === 1);
    } catch (error) {
      disconnect(client);
      throw error;
    } finally {
      forget();
    }
  }

  /**
   * The same for a command, which is the only one to load into this schema until it closes the database.
   * @param signal ends the connection, too
   * @throws MillraceError database_unavailable, database_refused, database_in_use
   */
  static async openAlone(options: Connection, signal: AbortSignal): Promise<PostgresDatabase> {
    const name = nameOf(options.connectionString);
    let database: PostgresDatabase | null = null;
    try {
      const opened = (database = await PostgresDatabase.open(options, signal));
      opened.endWith(signal);
      const isIdle = (): boolean => !opened.#isBeginning && opened.#client.getTransactionStatus() === 'I';
      opened.#lock = await LoadLock.take(opened, `${name}, schema ${options.schema}`, isIdle, signal);
      return opened;
    } catch (error) {
      await database?.close();
      throw toMillraceError(name, error);
    }
  }

  async begin(): Promise<void> {
    this.#isBeginning = true;
    try {
      await this.#lock?.quiet();
      await this.run(this.#begin);
    } finally {
      this.#isBeginning = false;
    }
    await this.#lock?.hold();
  }

  async createSchema(): Promise<void> {
    const { schema } = this.sql;
    await this.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`millrace tables ${schema}`]);
    const exists = await this.query('SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1', [schema]);
    if (exists.length === 0) await this.run(`CREATE SCHEMA ${postgres.quote(schema)}`);
  }

  async run(sql: string): Promise<void> {
    await this.#client.query(sql);
  }

  async query(sql: string, values: readonly (string | number | null)[] = []): Promise<unknown[][]> {
    const result = await this.#client.query<unknown[]>({ text: sql, values: [...values], rowMode: 'array' });
    return result.rows;
  }

  gather(table: TableDefinition): GatheredRows {
    return new RowLines(table);
  }

  /** @param lines as `gather` writes them */
  async append(table: TableDefinition, lines: Buffer, load: number): Promise<void> {
    const { text, statement } = getOrMake(this.#texts, table.name, () => {
      const made = new CopyText(table, LOAD_COLUMN);
      const columns = made.columns.map((name) => postgres.quote(name)).join(', ');
      const into = `${tableName(this.sql, table.name)} (${columns})`;
      return { text: made, statement: `COPY ${into} FROM STDIN (ENCODING 'UTF8')` };
    });
    // Before the COPY begins: a COPY without an end blocks the ROLLBACK.
    const rows = text.of(lines, String(load));
    const stream = this.#client.query(this.#copyFrom(statement));
    stream.end(rows);
    await finished(stream);
  }

  async tryAppend(
    { definition, bytes, rows }: RowBatch,
    load: number,
    from: number,
    to: number,
  ): Promise<string | null> {
    await this.run(`SAVEPOINT ${SAVEPOINT}`);
    try {
      const some = to - from < rows ? bytes.subarray(startOf(bytes, from), startOf(bytes, to)) : bytes;
      await this.append(definition, some, load);
    } catch (error) {
      const reason = refusalOf(error);
      if (reason === null) throw error;
      await this.run(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`);
      return reason;
    }
    await this.run(`RELEASE SAVEPOINT ${SAVEPOINT}`);
    return null;
  }

  /** Destroys the connection once the signal aborts, without waiting for the server. */
  endWith(signal: AbortSignal): void {
    this.#forget = onAbort(signal, () => this.destroy());
  }

  /** Cuts the connection: the server rolls back what is not committed. */
  destroy(): void {
    disconnect(this.#client);
  }

  async close(): Promise<void> {
    await this.#lock?.release().catch(() => undefined);
    await this.#client.end().catch(() => undefined);
    this.#forget();
  }
}

/** Index at which the nth line begins, from 0. */
function startOf(lines: Buffer, n: number): number {
  let at = 0;
  for (let line = 0; line < n; line += 1) at = lines.indexOf(LINE_FEED, at) + 1;
  return at;
}

/** Cuts a connection, whatever runs on it. */
function disconnect(client: Client): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } };
  connection.stream.destroy();
}
