import { columnsOf, type Column, type TableDefinition } from '../../definition.ts';
import { arrivalOf, eventColumnsOf, keyOf, sortedBy } from '../identity.ts';
import { asText, deleteDay, distinctRows } from '../replace.ts';
import { type Dialect, escaped, listColumns, script } from './dialect.ts';
import { patternOf, type Source } from './source.ts';

const quote = (name: string): string => `\`${name.replaceAll('`', '\\`')}\``;

/** It has no transactions: one statement removes the rows to be replaced, the next adds the new ones. A load is repeated if it ends between them. */
export const clickhouse: Dialect = {
  title: 'ClickHouse',
  types: {
    text: 'String',
    integer: 'Int64',
    decimal: 'Decimal(38, 18)',
    boolean: 'Bool',
    date: 'Date32',
    timestamp: `DateTime64(6, 'UTC')`,
    json: 'String',
  },
  addsMissing: true,
  quote,
  literal: escaped,
  describedBy: { column: (text) => `COMMENT ${text}`, table: (text) => `COMMENT ${text}` },
  typeOf,
  location: (table) => `https://BUCKET.s3.amazonaws.com/${table}/`,
  // By month: each partition is at least a file, and years of days would be thousands.
  storage: (table) =>
    [
      '\nENGINE = MergeTree',
      `PARTITION BY toYYYYMM(${quote(arrivalOf(table))})`,
      `ORDER BY (${[...new Set([...sortedBy(table), arrivalOf(table)])].map(quote).join(', ')})`,
      'SETTINGS allow_nullable_key = 1',
    ].join('\n'),
  startOf: (day, time = '00:00:00') => `toDateTime64('${day} ${time}', 6, 'UTC')`,
  nullable: (type) => `Nullable(${type})`,
  load: (table, document, source) => {
    const rows = `(${rowsOf(table, source)})`;
    const columns = listColumns(table, quote);
    return script([
      refuseMoved(table, rows),
      ...(source.day === null ? [] : [deleteDay(table, source.day, clickhouse)]),
      ...deleteSame(table, rows),
      `INSERT INTO ${quote(table.name)} (\n${columns}\n)\n${distinctRows({ table, document, staged: rows }, clickhouse)}`,
    ]);
  },
};

function typeOf({ type, required }: Column): string {
  return required === true ? clickhouse.types[type] : `Nullable(${clickhouse.types[type]})`;
}

/** Statement that fails where versions before 26 would move dates before 1900 and after 2299 to these years, in silence. */
function refuseMoved(table: TableDefinition, rows: string): string {
  const times = columnsOf(table).filter(({ type }) => type === 'date' || type === 'timestamp');
  const moved = times.map(({ name }) => `toDate32(${quote(name)}) IN ('1900-01-01', '2299-12-31')`);
  const reason =
    'this ClickHouse moves dates before 1900 and after 2299, and there may be some: use 26 or later';
  const where = `toYear(toDate32('9999-12-31')) < 9999 AND (${moved.join(' OR ')})`;
  return `SELECT throwIf(count() > 0, '${reason}')\nFROM ${rows}\nWHERE ${where}`;
}

/** Statements that remove rows of the same events, and of the same answers, which have no event. */
function deleteSame(table: TableDefinition, rows: string): string[] {
  const event = eventColumnsOf(table);
  const answer = [...keyOf(table), '_loaded_at'];
  if (event === null) return [deleteWhere(table, rows, answer, '')];
  const id = quote(event.id);
  const same = deleteWhere(table, rows, [event.id, event.type, event.user], `${id} IS NOT NULL`);
  return table.name === 'events' ? [same] : [same, deleteWhere(table, rows, answer, `${id} IS NULL`)];
}

function deleteWhere(
  table: TableDefinition,
  rows: string,
  columns: readonly string[],
  condition: string,
): string {
  const known = new Map(columnsOf(table).map((column) => [column.name, column]));
  // As texts, because null equals nothing; an empty text is not null.
  const texts = [...new Set(columns)].map((name) =>
    asText(known.get(name) as Column, quote(name), clickhouse),
  );
  const own = condition === '' ? '' : `${condition}\n  AND `;
  const staged = condition === '' ? '' : `\n  WHERE ${condition}`;
  const same = texts.join(', ');
  return `DELETE FROM ${quote(table.name)}\nWHERE ${own}(${same}) IN (\n  SELECT ${same}\n  FROM ${rows}${staged}\n)`;
}

/** Files on the server, or in a bucket that it may read. */
function rowsOf(table: TableDefinition, source: Source): string {
  const { format, compression } = source;
  const place = escaped(patternOf(source, '**/*'));
  const columns = columnsOf(table).map((column) => `${quote(column.name)} ${typeOf(column)}`);
  const [name, packed] =
    format === 'parquet' ? ['Parquet', 'none'] : ['JSONEachRow', compression === 'gzip' ? 'gz' : compression];
  const args = [place, `'${name}'`, escaped(columns.join(', ')), `'${packed === 'zstd' ? 'zst' : packed}'`];
  const from = source.place.startsWith('gs:') ? 'gcs' : /^(?:s3|https?):/.test(source.place) ? 's3' : 'file';
  const settings = `SETTINGS input_format_json_read_objects_as_strings = 1, date_time_input_format = 'best_effort'`;
  return `SELECT\n${listColumns(table, quote)}\nFROM ${from}(${args.join(', ')})\n${settings}`;
}
