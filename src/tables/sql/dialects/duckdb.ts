import type { ColumnType, TableDefinition } from '../../definition.ts';
import { replaceRows } from '../replace.ts';
import { type Dialect, doubleQuoted, listColumns, literal, script, STAGED } from './dialect.ts';
import { patternOf, type Source } from './source.ts';

/**
 * Decimals and times are read from JSON as text: DuckDB's reader would turn 1.1 into 1.100000000000000128 in a decimal. It never
 * keeps more digits than a double has; Parquet does.
 */
const READ_AS_TEXT: ReadonlySet<ColumnType> = new Set(['decimal', 'date', 'timestamp']);

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
  rowId: 'rowid',
  addsMissing: true,
  quote: doubleQuoted,
  literal,
  location: (table) => `./${table}/`,
  // No index: blocks of rows have their least and greatest values, and an index would have to be in memory.
  storage: () => '',
  // DuckDB finds the first row by one value in a hash table; by several values, it sorts whole rows.
  together: (columns) => `(${columns.map((name) => `${name} IS NOT NULL, ${name}`).join(', ')})`,
  load: (table, document, source) => {
    const staged = doubleQuoted(STAGED);
    return script([
      `SET TimeZone = 'UTC'`,
      'BEGIN TRANSACTION',
      `CREATE OR REPLACE TEMPORARY TABLE ${staged} AS FROM ${doubleQuoted(table.name)} LIMIT 0`,
      `INSERT INTO ${staged} BY NAME\n${rowsOf(table, source)}`,
      ...replaceRows({ table, document, staged, day: source.day }, duckdb),
      `DROP TABLE ${staged}`,
      'COMMIT',
    ]);
  },
};

function rowsOf(table: TableDefinition, source: Source): string {
  const place = literal(patternOf(source, '**/*'));
  // By name, because files of an earlier version lack new columns.
  if (source.format === 'parquet')
    return `SELECT * FROM read_parquet(${place}, union_by_name = true, hive_partitioning = false)`;
  const { types } = duckdb;
  const read = listColumns(table, (name, { type }) => {
    return `${doubleQuoted(name)}: ${literal(types[READ_AS_TEXT.has(type) ? 'text' : type])}`;
  });
  const values = listColumns(table, (name, { type }) => {
    const column = doubleQuoted(name);
    return READ_AS_TEXT.has(type) ? `CAST(${column} AS ${types[type]}) AS ${column}` : column;
  });
  return `SELECT\n${values}\nFROM read_ndjson(${place}, hive_partitioning = false, columns = {\n${read}\n})`;
}
