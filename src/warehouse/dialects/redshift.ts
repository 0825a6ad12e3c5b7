import { type Dialect, doubleQuoted, literal } from './dialect.ts';

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
  location: (table) => `s3://BUCKET/${table}.ndjson`,
  load: ({ name }, from) =>
    [
      `SET timezone TO 'UTC';`,
      `COPY ${doubleQuoted(name)}`,
      `FROM ${literal(from)}`,
      `IAM_ROLE DEFAULT`,
      `FORMAT AS JSON 'auto'`,
      // Digits beyond the scale are rounded, as everywhere else.
      `TIMEFORMAT 'auto' ROUNDEC;`,
    ].join('\n'),
};
