import { arrivalOf, sortedBy } from '../identity.ts';
import { replaceRows } from '../replace.ts';
import { type Dialect, escaped, listColumns, script, STAGED } from './dialect.ts';
import { extensionOf, isFolder, patternOf, folderOf, type Source } from './source.ts';

/** Words that are names only in quotes, where they keep their case: so in capitals. */
const RESERVED = new Set(
  (
    'account all alter and any as between by case cast check column connect connection constraint create cross current ' +
    'current_date current_time current_timestamp current_user database delete distinct drop else exists false following for ' +
    'from full grant group gscluster having ilike in increment inner insert intersect into is issue join lateral left like ' +
    'localtime localtimestamp minus natural not null of on or order organization qualify regexp revoke right rlike row rows ' +
    'sample schema select set some start table tablesample then to trigger true try_cast union unique update using values ' +
    'view when whenever where with'
  ).split(' '),
);

/** Other names are not quoted, because quoted names are case-sensitive in every query. */
const quote = (name: string): string => (RESERVED.has(name) ? `"${name.toUpperCase()}"` : name);

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
  addsMissing: true,
  quote,
  literal: escaped,
  describedBy: { column: (text) => `COMMENT ${text}`, table: (text) => `COMMENT = ${text}` },
  location: (table) => `@STAGE/${table}/`,
  storage: (table) => {
    const [first] = sortedBy(table).map(quote);
    return `\nCLUSTER BY (TO_DATE(${quote(arrivalOf(table))})${first === undefined ? '' : `, ${first}`})`;
  },
  load: (table, document, source) => {
    const parquet = source.format === 'parquet';
    const values = listColumns(table, (name, { type }) => {
      const value = `$1:${/^\w+$/.test(name) ? name : `"${name}"`}`;
      if (type === 'json') return parquet ? `PARSE_JSON(${value}::VARCHAR)` : value;
      return `${value}::${snowflake.types[type]}`;
    });
    const format = parquet
      ? 'TYPE = PARQUET USE_LOGICAL_TYPE = TRUE'
      : // Objects in `extra` may repeat a member.
        `TYPE = JSON ALLOW_DUPLICATE = TRUE COMPRESSION = ${source.compression.toUpperCase()}`;
    return script([
      `ALTER SESSION SET TIMEZONE = 'UTC'`,
      `CREATE OR REPLACE TEMPORARY TABLE ${STAGED} LIKE ${quote(table.name)}`,
      [
        `COPY INTO ${STAGED}`,
        `FROM (\nSELECT\n${values}\nFROM ${stage(source)}\n)`,
        ...pattern(source),
        `FILE_FORMAT = (${format})`,
        'ON_ERROR = ABORT_STATEMENT',
      ].join('\n'),
      'BEGIN TRANSACTION',
      ...replaceRows({ table, document, staged: STAGED, day: source.day }, snowflake),
      'COMMIT',
      `DROP TABLE ${STAGED}`,
    ]);
  },
};

/** The folder before the first `*`; the rest is a pattern of files below it. */
function stage(source: Source): string {
  const place = isFolder(source) ? folderOf(source) : source.place.replace(/[^/]*\*.*$/, '');
  return /^@[\w./=%~-]+$/.test(place) ? place : escaped(place);
}

function pattern(source: Source): string[] {
  if (isFolder(source)) return [`PATTERN = '.*${extensionOf(source).replaceAll('.', '[.]')}'`];
  const found = /[^/]*\*.*$/.exec(patternOf(source, '**/*'))?.[0];
  if (found === undefined) return [];
  return [`PATTERN = '.*${found.replaceAll('.', '[.]').replaceAll(/\*+/g, '.*')}'`];
}
