import { rm, writeFile } from 'node:fs/promises';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { messageOf, MillraceError } from '../../core/errors.ts';
import { installCommand } from '../../lib/installed.ts';
import { footerOf, MAGIC } from '../parquet/footer.ts';
import { RowColumns } from '../parquet/row-columns.ts';
import { encodeGroup, placed } from '../parquet/row-group.ts';
import { allColumnsOf, columnsOf, type TableDefinition } from '../../tables/definition.ts';
import { literal } from '../../tables/sql/dialects/dialect.ts';
import { duckdb } from '../../tables/sql/dialects/duckdb.ts';
import {
  type Database,
  type GatheredRows,
  LOAD_COLUMN,
  type RowBatch,
  RowsRefused,
} from '../../tables/database/database.ts';

/** Query for the database's file; null for one in memory. */
const OWN_FILE = 'SELECT path FROM duckdb_databases() WHERE database_name = current_database()';
const UTC = `SET TimeZone = 'UTC'`;
const PACKAGE = '@duckdb/node-api';

/** A DuckDB file. DuckDB locks it for this process while it is open. */
export class DuckDBDatabase implements Database {
  readonly dialect = 'duckdb';
  readonly sql = duckdb;
  readonly #instance: DuckDBInstance;
  readonly #connection: DuckDBConnection;
  /** Connection in which rows are tried first, after some were refused: a refusal ends the transaction. */
  #trial: DuckDBConnection | null = null;
  /** File of the rows that are being added, and the batch that is in it. */
  readonly #rows: string;
  #written: RowBatch | null = null;

  private constructor(instance: DuckDBInstance, connection: DuckDBConnection, rows: string) {
    this.#instance = instance;
    this.#connection = connection;
    this.#rows = rows;
  }

  /**
   * @param access `read` makes no file and changes none
   * @throws MillraceError usage where DuckDB is not installed; database_in_use, database_refused
   */
  static async open(file: string, access: 'read' | 'write' = 'write'): Promise<DuckDBDatabase> {
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
      // Rows come in small batches, one after another: more threads only wait for each other, which takes twice the processor time.
      const mode = access === 'read' ? { access_mode: 'READ_ONLY' } : { threads: '1' };
      const instance = await DuckDBInstance.create(file, mode);
      const connection = await instance.connect();
      const [[path] = []] = (await connection.runAndReadAll(OWN_FILE)).getRows();
      // DuckDB opens other files as tables of a database in memory.
      if (typeof path !== 'string') {
        connection.closeSync();
        instance.closeSync();
        throw new Error('it is no DuckDB file, and what is loaded would be in memory only');
      }
      await connection.run(UTC);
      // DuckDB caches files by name, and the file of rows is overwritten for each batch.
      await connection.run('SET enable_external_file_cache = false');
      const rows = `${file}.loading.parquet`;
      // A run that was killed leaves rows there.
      if (access === 'write') await rm(rows, { force: true });
      return new DuckDBDatabase(instance, connection, rows);
    } catch (error) {
      const code = /lock/i.test(messageOf(error)) ? 'database_in_use' : 'database_refused';
      throw new MillraceError(code, `${file}: ${messageOf(error)}`, { cause: error });
    }
  }

  begin(): Promise<void> {
    return this.run('BEGIN');
  }

  /** DuckDB has a schema, and no other process has the file. */
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

  gather(table: TableDefinition): GatheredRows {
    return new ParquetRows(table);
  }

  async tryAppend(batch: RowBatch, load: number, from: number, to: number): Promise<string | null> {
    const insertion = await this.#insertion(batch, load, from, to);
    if (this.#trial === null) {
      try {
        await this.run(insertion);
        return null;
      } catch (error) {
        if (refusalOf(error) === null) throw error;
        this.#trial = await this.#instance.connect();
        await this.#trial.run(UTC);
        throw new RowsRefused(messageOf(error), { cause: error });
      }
    }
    await this.#trial.run('BEGIN');
    try {
      await this.#trial.run(insertion);
    } catch (error) {
      const reason = refusalOf(error);
      if (reason === null) throw error;
      return reason;
    } finally {
      await this.#trial.run('ROLLBACK');
    }
    await this.run(insertion);
    return null;
  }

  /**
   * Writes the batch beside the database, as Parquet: DuckDB's reader of JSON would turn numbers into doubles, also inside JSON.
   * @returns the statement that adds rows of it
   */
  async #insertion(batch: RowBatch, load: number, from: number, to: number): Promise<string> {
    const { definition, rows, bytes } = batch;
    if (this.#written !== batch) {
      this.#written = null;
      await writeFile(this.#rows, bytes, { mode: 0o600 });
      this.#written = batch;
    }
    const columns = columnsOf(definition);
    const names = columns.map(({ name }) => duckdb.quote(name));
    const values = columns.map(({ name, type }) => `CAST(${duckdb.quote(name)} AS ${duckdb.types[type]})`);
    const part = to - from < rows ? `WHERE file_row_number >= ${from} AND file_row_number < ${to}` : '';
    return `INSERT INTO ${duckdb.quote(definition.name)} (${names.join(', ')}, ${LOAD_COLUMN})
       SELECT ${values.join(', ')}, ${load} FROM read_parquet(${literal(this.#rows)}) ${part}`;
  }

  async close(): Promise<void> {
    this.#trial?.closeSync();
    this.#connection.closeSync();
    this.#instance.closeSync();
    await rm(this.#rows, { force: true });
  }
}

/** Why rows were refused, without their values; null for another error. */
function refusalOf(error: unknown): string | null {
  const message = messageOf(error).split('\n', 1)[0] ?? '';
  return /^(Constraint|Conversion|Invalid Input|Out of Range) Error:/.test(message)
    ? message.replaceAll(/(["']).*\1/g, '…')
    : null;
}

/** Rows as a Parquet file, which keeps numbers and JSON as they are. */
class ParquetRows extends RowColumns implements GatheredRows {
  readonly definition: TableDefinition;

  constructor(definition: TableDefinition) {
    super(allColumnsOf(definition), columnsOf(definition));
    this.definition = definition;
  }

  take(): RowBatch {
    const { definition, rows, columns } = this;
    const { bytes, meta } = encodeGroup(columns, this.gathered(), 'none');
    this.clear();
    const footer = footerOf(columns, [placed(meta, MAGIC.length)]);
    return { definition, rows, bytes: Buffer.concat([MAGIC, bytes, footer]) };
  }
}
