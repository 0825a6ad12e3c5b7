import { type Dialect, listColumns } from './dialect.ts';

const quote = (name: string): string => `\`${name}\``;

/** Statements for a session whose default dataset is the one with the tables. */
export const bigquery: Dialect = {
  title: 'BigQuery',
  types: {
    text: 'STRING',
    integer: 'INT64',
    decimal: 'BIGNUMERIC',
    boolean: 'BOOL',
    date: 'DATE',
    timestamp: 'TIMESTAMP',
    json: 'JSON',
  },
  quote,
  location: (table) => `gs://BUCKET/${table}.ndjson`,
  load: (table, from) => {
    // Without its columns, BigQuery would guess them from the rows.
    const columns = listColumns(table, ({ name, type, required }) => {
      return `${quote(name)} ${bigquery.types[type]}${required === true ? ' NOT NULL' : ''}`;
    });
    const uri = `'${from.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
    return `LOAD DATA INTO ${quote(table.name)} (\n${columns}\n)\nFROM FILES (format = 'JSON', uris = [${uri}]);`;
  },
};
