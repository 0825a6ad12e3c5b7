import { type Dialect, literal } from './dialect.ts';

/** Names are not quoted: Snowflake would make them case-sensitive, for every query there will be. */
export const snowflake: Dialect = {
  title: 'Snowflake',
  types: {
    text: 'VARCHAR',
    integer: 'NUMBER(19, 0)',
    decimal: 'NUMBER(38, 18)',
    boolean: 'BOOLEAN',
    date: 'DATE',
    timestamp: 'TIMESTAMP_TZ',
    json: 'VARIANT',
  },
  quote: (name) => name,
  location: (table) => `@STAGE/${table}.ndjson`,
  load: ({ name }, from) => {
    const source = /^@[\w./%~-]+$/.test(from) ? from : literal(from);
    return [
      `ALTER SESSION SET TIMEZONE = 'UTC';`,
      `COPY INTO ${name}`,
      `FROM ${source}`,
      // A repeated member may stand in extra.
      `FILE_FORMAT = (TYPE = JSON ALLOW_DUPLICATE = TRUE)`,
      `MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE`,
      `ON_ERROR = ABORT_STATEMENT;`,
    ].join('\n');
  },
};
