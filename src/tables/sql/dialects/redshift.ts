import { columnsOf, type TableDefinition } from '../../definition.ts';
import { arrivalOf, sortedBy } from '../identity.ts';
import { replaceRows } from '../replace.ts';
import { type Dialect, doubleQuoted, escaped, listColumns, script, STAGED } from './dialect.ts';
import type { Source } from './source.ts';

const STAGED_NAME = doubleQuoted(STAGED);

export const redshift: Dialect = {
  title: 'Redshift',
  types: {
    text: 'VARCHAR(65535)',
    integer: 'BIGINT',
    decimal: 'DECIMAL(38, 18)',
    boolean: 'BOOLEAN',
    date: 'DATE',
    timestamp: 'TIMESTAMPTZ',
    json: 'SUPER',
  },
  quote: doubleQuoted,
  // Unlike in PostgreSQL, a backslash escapes the next character.
  literal: escaped,
  location: (table) => `s3://BUCKET/${table}/`,
  storage: (table) => {
    const user = sortedBy(table).find((name) => name === 'user_id');
    const spread = user === undefined ? 'DISTSTYLE AUTO' : `DISTSTYLE KEY\nDISTKEY (${doubleQuoted(user)})`;
    const sorted = new Set([arrivalOf(table), ...sortedBy(table)]);
    return `\n${spread}\nCOMPOUND SORTKEY (${[...sorted].map(doubleQuoted).join(', ')})`;
  },
  load: (table, document, source) =>
    script([
      `SET timezone TO 'UTC'`,
      'BEGIN',
      `CREATE TEMPORARY TABLE ${STAGED_NAME} (\n${stagedColumns(table, source)}\n)`,
      copy(source),
      ...replaceRows(
        { table, document, staged: STAGED_NAME, typed: parsed(table, source), day: source.day },
        redshift,
      ),
      `DROP TABLE ${STAGED_NAME}`,
      'COMMIT',
    ]),
};

/** JSON of Parquet files is staged as text, because COPY does not parse it. */
function stagedColumns(table: TableDefinition, { format }: Source): string {
  return listColumns(table, (name, { type }) => {
    const text = format === 'parquet' && type === 'json';
    return `${doubleQuoted(name)} ${redshift.types[text ? 'text' : type]}`;
  });
}

function parsed(table: TableDefinition, { format }: Source): string {
  if (format === 'ndjson') return STAGED_NAME;
  const values = columnsOf(table).map(({ name, type }) => {
    const column = doubleQuoted(name);
    return type === 'json' ? `JSON_PARSE(${column}) AS ${column}` : column;
  });
  return `(SELECT ${values.join(', ')} FROM ${STAGED_NAME})`;
}

/** Redshift reads all files whose names begin with the place, and has no patterns. */
function copy({ place, format, compression }: Source): string {
  const packed = { none: [], gzip: ['GZIP'], zstd: ['ZSTD'] }[compression];
  return [
    `COPY ${STAGED_NAME}`,
    `FROM ${escaped(place.replace(/\*.*$/, ''))}`,
    'IAM_ROLE DEFAULT',
    ...(format === 'parquet'
      ? ['FORMAT AS PARQUET']
      : // Digits beyond the scale are rounded, as everywhere else.
        [`FORMAT AS JSON 'auto'`, ...packed, `TIMEFORMAT 'auto'`, 'ROUNDEC']),
  ].join('\n');
}
