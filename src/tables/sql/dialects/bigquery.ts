import { columnsOf } from '../../definition.ts';
import { arrivalOf, sortedBy } from '../identity.ts';
import { replaceRows } from '../replace.ts';
import { type Dialect, escaped, listColumns, script, STAGED } from './dialect.ts';
import { patternOf } from './source.ts';

const quote = (name: string): string => `\`${name}\``;
const described = (text: string): string => `OPTIONS (description = ${text})`;

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
  lacksUsing: true,
  comparesStructs: true,
  addsMissing: true,
  quote,
  literal: escaped,
  describedBy: { column: described, table: described },
  location: (table) => `gs://BUCKET/${table}/`,
  storage: (table) => {
    const sorted = sortedBy(table).map(quote);
    const cluster = sorted.length === 0 ? '' : `\nCLUSTER BY ${sorted.join(', ')}`;
    return `\nPARTITION BY DATE(${quote(arrivalOf(table))})${cluster}`;
  },
  load: (table, document, source) => {
    if (source.format === 'ndjson' && source.compression === 'zstd')
      throw new RangeError('BigQuery reads no NDJSON that zstd has packed: export with --compress gzip');
    // Beside the table, because LOAD DATA writes no temporary one. JSON of Parquet files is parsed from there.
    const staged = quote(`${STAGED}_${table.name}`);
    const parquet = source.format === 'parquet';
    // Without columns, BigQuery would guess them from the rows.
    const columns = listColumns(table, (name, { type, required }) => {
      // A required column of a Parquet file must be required here.
      const typed = parquet && type === 'json' ? 'STRING' : bigquery.types[type];
      return `${quote(name)} ${typed}${required === true ? ' NOT NULL' : ''}`;
    });
    const texts = columnsOf(table).filter(({ type }) => parquet && type === 'json');
    const parsed = texts.map(
      ({ name }) => `PARSE_JSON(${quote(name)}, wide_number_mode => 'round') AS ${quote(name)}`,
    );
    const typed = parquet ? `(SELECT * REPLACE (${parsed.join(', ')}) FROM ${staged})` : staged;
    const options = [
      `format = '${parquet ? 'PARQUET' : 'JSON'}'`,
      `uris = [${escaped(patternOf(source, '*'))}]`,
      ...(parquet ? [`decimal_target_types = ['BIGNUMERIC']`] : []),
      ...(!parquet && source.compression === 'gzip' ? [`compression = 'GZIP'`] : []),
    ];
    return script([
      `LOAD DATA OVERWRITE ${staged} (\n${columns}\n)\nFROM FILES (${options.join(', ')})`,
      'BEGIN TRANSACTION',
      ...replaceRows({ table, document, staged, typed, day: source.day }, bigquery),
      'COMMIT TRANSACTION',
      `DROP TABLE ${staged}`,
    ]);
  },
};
