import { open, rm } from 'node:fs/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { MillraceError, messageOf } from '../core/errors.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import { installCommand } from '../lib/installed.ts';
import { columnsOf, type TableDefinition } from '../warehouse/definition.ts';
import { literal } from '../warehouse/sql/dialects/dialect.ts';
import { duckdb } from '../warehouse/sql/dialects/duckdb.ts';
import { LOAD_COLUMN, type Database } from './database.ts';
import { ParquetRows } from './parquet-rows.ts';

/** Where the database is; null for one in memory. */
const OWN_FILE = 'SELECT path FROM duckdb_databases() WHERE database_name = current_database()';
const PACKAGE = '@duckdb/node-api';

/** A DuckDB file. It is this process's alone for as long as it is open: DuckDB sees to that. */
export class DuckDBDatabase implements Database {
  readonly dialect = 'duckdb';
  readonly sql = duckdb;
  readonly #connection: DuckDBConnection;
  readonly #close: () => void;
  /** Where rows stand for a moment, on their way in. */
  readonly #rows: string;
  readonly #made = new Map<string, ParquetRows>();

  private constructor(connection: DuckDBConnection, close: () => void, rows: string) {
    this.#connection = connection;
    this.#close = close;
    this.#rows = rows;
  }

  /** @throws MillraceError usage where DuckDB is not installed; database_in_use, database_refused */
  static async open(file: string): Promise<DuckDBDatabase> {
    const { DuckDBInstance } = await import('@duckdb/node-api').catch((error: unknown) => {
      throw new MillraceError(
        'usage',
        `DuckDB is not installed beside millrace: ${installCommand(PACKAGE)}`,
        {
          cause: error,
        },
      );
    });
    try {
      const instance = await DuckDBInstance.create(file);
      const connection = await instance.connect();
      const close = (): void => {
        connection.closeSync();
        instance.closeSync();
      };
      const [[path] = []] = (await connection.runAndReadAll(OWN_FILE)).getRows();
      // DuckDB takes other files for tables of a database in memory.
      if (typeof path !== 'string') {
        close();
        throw new Error('it is no DuckDB file, and what is loaded would be in memory only');
      }
      await connection.run(`SET TimeZone = 'UTC'`);
      // It keeps bytes of files by their names, and the file that rows come in by is written again and again.
      await connection.run('SET enable_external_file_cache = false');
      const rows = `${file}.loading.parquet`;
      // Of a run that was killed: they are people's rows, in plain text. Earlier versions had them as NDJSON.
      for (const left of [rows, `${file}.loading.ndjson`]) await rm(left, { force: true });
      return new DuckDBDatabase(connection, close, rows);
    } catch (error) {
      const code = /lock/i.test(messageOf(error)) ? 'database_in_use' : 'database_refused';
      throw new MillraceError(code, `${file}: ${messageOf(error)}`, { cause: error });
    }
  }

  begin(): Promise<void> {
    return this.run('BEGIN');
  }

  /** It has one, and nobody else makes tables in its file. */
  createSchema(): Promise<void> {
    return Promise.resolve();
  }

  async run(sql: string): Promise<void> {
    await this.#connection.run(sql);
  }

  async query(sql: string, values: readonly (string | number | null)[] = []): Promise<unknown[][]> {
    const result = await this.#connection.runAndReadAll(sql, [...values]);
    return result.getRows();
  }

  /** By way of Parquet: DuckDB's reader of JSON makes doubles of numbers, and writes JSON anew with them. */
  async append(table: TableDefinition, lines: Buffer, load: number): Promise<void> {
    const rows = getOrMake(this.#made, table.name, () => new ParquetRows(table));
    await using file = await open(this.#rows, 'w', 0o600);
    await file.writeFile(rows.of(lines));
    const columns = columnsOf(table);
    const names = columns.map(({ name }) => duckdb.quote(name));
    const values = columns.map(({ name, type }) => `CAST(${duckdb.quote(name)} AS ${duckdb.types[type]})`);
    await this.run(
      `INSERT INTO ${duckdb.quote(table.name)} (${names.join(', ')}, ${LOAD_COLUMN})
       SELECT ${values.join(', ')}, ${load} FROM read_parquet(${literal(this.#rows)})`,
    );
  }

  async close(): Promise<void> {
    this.#close();
    await rm(this.#rows, { force: true });
  }
}
