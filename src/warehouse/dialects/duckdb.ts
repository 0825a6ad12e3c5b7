import type { ColumnType } from '../definition.ts';
import { type Dialect, doubleQuoted, listColumns, literal } from './dialect.ts';

/**
 * What the file is read as. Decimals and times go through text: DuckDB's JSON reader would turn 1.1 into
 * 1.100000000000000128 on its way to a decimal. More than 17 digits of a number it does not keep either way.
 */
const READ_AS: Readonly<Record<ColumnType, string>> = {
  text: 'VARCHAR',
  integer: 'BIGINT',
  decimal: 'VARCHAR',
  boolean: 'BOOLEAN',
  date: 'VARCHAR',
  timestamp: 'VARCHAR',
  json: 'JSON',
};

export const duckdb: Dialect = {
  title: 'DuckDB',
  types: {
    text: 'VARCHAR',
    integer: 'BIGINT',
    decimal: 'DECIMAL(38, 18)',
    boolean: 'BOOLEAN',
    date: 'DATE',
    timestamp: 'TIMESTAMPTZ',
    json: 'JSON',
  },
  quote: doubleQuoted,
  location: (table) => `${table}.ndjson`,
  load: (table, from) => {
    const names = listColumns(table, ({ name }) => doubleQuoted(name));
    const read = listColumns(table, ({ name, type }) => `${doubleQuoted(name)}: ${literal(READ_AS[type])}`);
    const values = listColumns(table, ({ name, type }) => {
      const column = doubleQuoted(name);
      return READ_AS[type] === duckdb.types[type] ? column : `CAST(${column} AS ${duckdb.types[type]})`;
    });
    return [
      `SET TimeZone = 'UTC';`,
      `INSERT INTO ${doubleQuoted(table.name)} (\n${names}\n)`,
      `SELECT\n${values}`,
      `FROM read_ndjson(${literal(from)}, columns = {\n${read}\n});`,
    ].join('\n');
  },
};
