import { columnsOf, type TableDefinition } from '../../definition.ts';
import { arrivalOf, eventColumnsOf, MOST_SORTED, rowKeyOf, sortedBy, versionOf } from '../identity.ts';
import { distinctRows, isOfDay } from '../replace.ts';
import { type Dialect, escaped, listColumns, script } from './dialect.ts';
import { extensionOf, folderOf, isFolder, type Source } from './source.ts';

const quote = (name: string): string => `\`${name.replaceAll('`', '``')}\``;

/**
 * Each statement is a transaction: one MERGE loads rows, or one INSERT replaces a day. Tables of Delta Lake, for SQL warehouses and
 * runtimes that have liquid clustering.
 */
export const databricks: Dialect = {
  title: 'Databricks',
  types: {
    text: 'STRING',
    integer: 'BIGINT',
    decimal: 'DECIMAL(38, 18)',
    boolean: 'BOOLEAN',
    date: 'DATE',
    timestamp: 'TIMESTAMP',
    json: 'STRING',
  },
  quote,
  literal: escaped,
  describedBy: { column: (text) => `COMMENT ${text}`, table: (text) => `COMMENT ${text}` },
  location: (table) => `/Volumes/CATALOG/SCHEMA/VOLUME/${table}/`,
  storage: (table) => {
    const keys = [...new Set([arrivalOf(table), ...sortedBy(table)])].slice(0, MOST_SORTED).map(quote);
    return `\nUSING DELTA\nCLUSTER BY (${keys.join(', ')})`;
  },
  load: (table, document, source) => {
    const rows = distinctRows({ table, document, staged: `(${rowsOf(table, source)})` }, databricks);
    const { day } = source;
    const load =
      day === null
        ? merge(table, document, rows)
        : `INSERT INTO ${quote(table.name)}\nREPLACE WHERE ${isOfDay(table, day, databricks)}\n${rows}`;
    return script([`SET TIME ZONE 'UTC'`, load]);
  },
};

function merge(table: TableDefinition, document: TableDefinition, rows: string): string {
  const event = eventColumnsOf(table);
  const version = versionOf(table, document);
  const key = rowKeyOf(table);
  const known =
    key.length === 0
      ? columnsOf(table)
          .filter(({ type }) => type !== 'json')
          .map(({ name }) => name)
      : [
          ...(event === null ? [] : [event.id, event.type, event.user]),
          ...key,
          ...(version === null ? [] : [version]),
          ...(table.name === 'events' ? [] : ['_loaded_at']),
        ];
  const same = [...new Set(known)].map((name) => `old_.${quote(name)} <=> new_.${quote(name)}`);
  return [
    `MERGE INTO ${quote(table.name)} AS old_`,
    `USING (\n${rows}\n) AS new_`,
    `ON ${same.join('\n  AND ')}`,
    'WHEN MATCHED THEN UPDATE SET *',
    'WHEN NOT MATCHED THEN INSERT *',
  ].join('\n');
}

function rowsOf(table: TableDefinition, source: Source): string {
  const place = isFolder(source) ? folderOf(source) : source.place;
  const names = isFolder(source) ? [`fileNamePattern => ${escaped(`*${extensionOf(source)}`)}`] : [];
  const schema = columnsOf(table).map(({ name, type }) => `${quote(name)} ${databricks.types[type]}`);
  const options = [
    `format => '${source.format === 'parquet' ? 'parquet' : 'json'}'`,
    `schema => ${escaped(schema.join(', '))}`,
    // The day in a folder's name is no column of the table.
    `partitionColumns => ''`,
    `mode => 'FAILFAST'`,
    ...names,
  ];
  const columns = listColumns(table, quote);
  return `SELECT\n${columns}\nFROM read_files(\n  ${escaped(place)},\n  ${options.join(',\n  ')}\n)`;
}
