import type { Column } from '../definition.ts';
import { type Dialect, doubleQuoted, listColumns, literal } from './dialect.ts';

const LINES = doubleQuoted('_millrace_lines');

/** For psql, which reads the file where it runs. `json` rather than `jsonb`, which would rewrite numbers and refuse some. */
export const postgres: Dialect = {
  title: 'PostgreSQL',
  types: {
    text: 'text',
    integer: 'bigint',
    decimal: 'numeric',
    boolean: 'boolean',
    date: 'date',
    timestamp: 'timestamptz',
    json: 'json',
  },
  quote: doubleQuoted,
  location: (table) => `${table}.ndjson`,
  load: (table, from) => {
    const names = listColumns(table, ({ name }) => doubleQuoted(name));
    return [
      'BEGIN;',
      `SET LOCAL TIME ZONE 'UTC';`,
      `CREATE TEMPORARY TABLE ${LINES} (line text) ON COMMIT DROP;`,
      // Neither control character can stand in a line of JSON, so each line is one value whatever is in it.
      String.raw`\copy ${LINES} FROM ${literal(from)} WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')`,
      `INSERT INTO ${doubleQuoted(table.name)} (\n${names}\n)`,
      `SELECT\n${listColumns(table, valueOf)}`,
      `FROM (SELECT line::json AS line FROM ${LINES}) AS rows;`,
      'COMMIT;',
    ].join('\n');
  },
};

function valueOf({ name, type }: Column): string {
  if (type === 'json') return `line->${literal(name)}`;
  const text = `line->>${literal(name)}`;
  return type === 'text' ? text : `(${text})::${postgres.types[type]}`;
}
