import { columnsOf, type TableDefinition } from '../../definition.ts';
import { eventColumnsOf, sortedBy } from '../identity.ts';
import { replaceRows } from '../replace.ts';
import { type Dialect, doubleQuoted, listColumns, literal, script, STAGED } from './dialect.ts';
import { extensionOf, folderOf, isFolder, type Source } from './source.ts';

const LINES = doubleQuoted('_millrace_lines');
/** Number of a line among all that are read. */
const NUMBER = doubleQuoted('_millrace_line');

/** An index has no room for a text above about 2,700 bytes. */
export function hashed(text: string): string {
  return `hashtextextended(${text}, 0)`;
}

const CAT = { none: 'cat', gzip: 'zcat', zstd: 'zstdcat' } as const;

/** For psql, which reads the files where it runs. `json` rather than `jsonb`, which would rewrite numbers and refuse some. */
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
  rowId: 'ctid',
  // It reads no Parquet.
  reads: 'ndjson',
  // Without it, the client shows a notice for each table and index that exists.
  preamble: 'SET client_min_messages = warning;',
  addsMissing: true,
  quote: doubleQuoted,
  literal: asciiLiteral,
  location: (table) => `./${table}/`,
  storage: () => '',
  // A load finds the rows of an event by the first; the second is for erasures and queries.
  indexes: (table, on) => {
    const event = eventColumnsOf(table)?.id;
    const types = new Map(columnsOf(table).map(({ name, type }) => [name, type]));
    const sets = [
      ...(event === undefined ? [] : [['event', [event]] as const]),
      ['key', sortedBy(table).filter((name) => types.get(name) !== 'json')] as const,
    ];
    return sets.flatMap(([name, columns]) => {
      if (columns.length === 0) return [];
      const values = columns.map((column) =>
        types.get(column) === 'text' ? hashed(doubleQuoted(column)) : doubleQuoted(column),
      );
      return [
        `CREATE INDEX IF NOT EXISTS ${doubleQuoted(`${table.name}_on_${name}`)} ON ${on} (${values.join(', ')})`,
      ];
    });
  },
  hashed,
  load: (table, document, source) => {
    if (source.format === 'parquet')
      throw new RangeError('PostgreSQL reads no Parquet: export with --format ndjson');
    const staged = doubleQuoted(STAGED);
    const replaced = replaceRows({ table, document, staged, day: source.day }, postgres);
    return [
      // Stops also if a shell command cannot read its files.
      String.raw`\set ON_ERROR_STOP on`,
      'BEGIN;',
      `SET LOCAL TIME ZONE 'UTC';`,
      `CREATE TEMPORARY TABLE ${LINES} (${NUMBER} bigint GENERATED ALWAYS AS IDENTITY, line text) ON COMMIT DROP;`,
      // Neither control character can be in a line of JSON, so each line is one value. SQL_ASCII keeps its bytes, so that one
      // character that the database refuses does not fail the whole file.
      String.raw`\copy ${LINES} (line) FROM ${placeOf(source)} WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02', ENCODING 'SQL_ASCII')`,
      `CREATE TEMPORARY TABLE ${staged} (LIKE ${doubleQuoted(table.name)}, ${NUMBER} bigint) ON COMMIT DROP;`,
      script([
        insertTaken(table, LINES, stagedRows(table)),
        `ANALYZE ${staged}`,
        ...replaced.slice(0, -1),
        insertTaken(table, staged, replaced.at(-1) ?? ''),
      ]),
      'COMMIT;',
    ].join('\n');
  },
};

/** A text in quotes of ASCII only, because psql reads others in its client's encoding. */
function asciiLiteral(text: string): string {
  if (/^\p{ASCII}*$/u.test(text)) return literal(text);
  const escaped = text.replaceAll('\\', '\\\\').replaceAll(/\P{ASCII}/gu, (character) => {
    return `\\+${(character.codePointAt(0) ?? 0).toString(16).padStart(6, '0')}`;
  });
  return `U&${literal(escaped)}`;
}

/** Statement that reads each line once, for all columns. */
function stagedRows(table: TableDefinition): string {
  const types = columnsOf(table).map(({ name, type }) => `${doubleQuoted(name)} ${postgres.types[type]}`);
  const line = `convert_from(convert_to(line, getdatabaseencoding()), 'UTF8')`;
  return [
    `INSERT INTO ${doubleQuoted(STAGED)} (\n${listColumns(table, doubleQuoted)},\n  ${NUMBER}\n)`,
    `SELECT\n${listColumns(table, (name) => `row_.${doubleQuoted(name)}`)},\n  ${NUMBER}`,
    `FROM ${LINES}, json_to_record(${line}::json) AS row_ (\n  ${types.join(',\n  ')}\n)`,
  ].join('\n');
}

/**
 * Block that inserts all rows; if the database refuses one, it inserts each alone and warns of those that are refused.
 * @param from the table that `insert` selects from, without a condition
 */
function insertTaken({ name }: TableDefinition, from: string, insert: string): string {
  const refused =
    'EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded THEN';
  return [
    'DO $rows$',
    'DECLARE one_ record;',
    'BEGIN',
    `${insert};`,
    refused,
    `FOR one_ IN SELECT ctid, ${NUMBER} FROM ${from} LOOP`,
    'BEGIN',
    `${insert}\nWHERE ${from}.ctid = one_.ctid;`,
    refused,
    `RAISE WARNING 'line % of the rows of ${name} is set aside, as the database refuses it (%)', one_.${NUMBER}, SQLSTATE;`,
    'END;',
    'END LOOP;',
    'END $rows$',
  ].join('\n');
}

/** A plain file, or the program that unpacks the files. */
function placeOf(source: Source): string {
  const { place, compression } = source;
  const cat = CAT[compression];
  if (isFolder(source)) {
    const names = `-name ${shell(`*${extensionOf(source)}`)} -exec ${cat} {} +`;
    return `PROGRAM ${literal(`find ${shell(folderOf(source))} -type f ${names}`)}`;
  }
  if (place.includes('*')) return `PROGRAM ${literal(`${cat} ${place.split('*').map(shell).join('*')}`)}`;
  return compression === 'none' ? literal(place) : `PROGRAM ${literal(`${cat} < ${shell(place)}`)}`;
}

/** A text as one word of a shell. */
function shell(text: string): string {
  return /^[\w./=:@%+-]*$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
