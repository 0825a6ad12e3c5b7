import { open, rm } from 'node:fs/promises';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { messageOf, MillraceError } from '../../core/errors.ts';
import { asBuffer } from '../../lib/byte-writer.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { installCommand } from '../../lib/installed.ts';
import { CLOSE_BRACE, COMMA, QUOTE, skipString, skipValue } from '../../lib/json-text.ts';
import { footerOf, MAGIC } from '../parquet/footer.ts';
import { RowColumns } from '../parquet/row-columns.ts';
import { encodeGroup, placed } from '../parquet/row-group.ts';
import { type Column, columnsOf, type TableDefinition } from '../../tables/definition.ts';
import { columnsInRow } from '../../tables/shape/plan.ts';
import { literal } from '../../tables/sql/dialects/dialect.ts';
import { duckdb } from '../../tables/sql/dialects/duckdb.ts';
import { type Database, LOAD_COLUMN, RowsRefused } from '../../tables/database/database.ts';
import { RowMembers } from './row-members.ts';

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
  /** File of the rows that are being added. */
  readonly #rows: string;
  readonly #made = new Map<string, ParquetRows>();

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
      const mode = access === 'read' ? { access_mode: 'READ_ONLY' } : {};
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

  async tryAppend(table: TableDefinition, lines: Buffer, load: number): Promise<string | null> {
    const insertion = await this.#insertion(table, lines, load);
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
   * Writes the rows beside the database, as Parquet: DuckDB's reader of JSON would turn numbers into doubles, also inside JSON.
   * @returns the statement that adds them
   */
  async #insertion(table: TableDefinition, lines: Buffer, load: number): Promise<string> {
    const rows = getOrMake(this.#made, table.name, () => new ParquetRows(table));
    await using file = await open(this.#rows, 'w', 0o600);
    await file.writeFile(rows.of(lines));
    const columns = columnsOf(table);
    const names = columns.map(({ name }) => duckdb.quote(name));
    const values = columns.map(({ name, type }) => `CAST(${duckdb.quote(name)} AS ${duckdb.types[type]})`);
    return `INSERT INTO ${duckdb.quote(table.name)} (${names.join(', ')}, ${LOAD_COLUMN})
       SELECT ${values.join(', ')}, ${load} FROM read_parquet(${literal(this.#rows)})`;
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

const LINE_FEED = 10;

/** Makes a Parquet file of the shaper's lines; its reader keeps numbers and JSON as they are. */
class ParquetRows {
  readonly #columns: readonly Column[];
  readonly #members: RowMembers;
  readonly #rows: RowColumns;

  constructor(definition: TableDefinition) {
    this.#columns = columnsInRow(definition);
    this.#members = new RowMembers(this.#columns);
    this.#rows = new RowColumns(this.#columns);
  }

  /** @returns the file, in pieces */
  of(lines: Buffer): readonly Buffer[] {
    const rows = this.#rows;
    for (let at = 0; at < lines.length;) at = this.#row(lines, at);
    const { bytes, meta } = encodeGroup(this.#columns, rows.gathered(), 'none');
    rows.clear();
    return [MAGIC, asBuffer(bytes), footerOf(this.#columns, [placed(meta, MAGIC.length)])];
  }

  /** The members of a row are in the order of `columnsInRow`; those without a value are missing. @returns index of the next row */
  #row(lines: Buffer, start: number): number {
    const members = this.#members;
    let at = start + 1;
    for (let from = 0; lines[at] !== CLOSE_BRACE;) {
      const column = members.columnAt(lines, at, from);
      if (column === -1) throw new Error('a row has a column that its table has not, or another order');
      at += members.lengthOf(column);
      const to = this.#endOf(lines, at, column);
      this.#rows.value(column, lines, at, to);
      at = Math.abs(to);
      if (lines[at] === COMMA) at += 1;
      from = column + 1;
    }
    if (lines[at + 1] !== LINE_FEED) throw new Error('a row does not end with its line');
    this.#rows.end();
    return at + 2;
  }

  /** Returns the index after the value, negative for a text with escapes. JSON is canonical in the shaper's lines. */
  #endOf(lines: Buffer, at: number, column: number): number {
    if (this.#columns[column]?.type === 'json') return skipValue(lines, at, 1);
    return lines[at] === QUOTE ? skipString(lines, at) : skipValue(lines, at, 1);
  }
}
