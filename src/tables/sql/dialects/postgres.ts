import { columnsOf, type TableDefinition } from '../../definition.ts';
import { eventColumnsOf, sortedBy } from '../identity.ts';
import { replaceRows } from '../replace.ts';
import { type Dialect, doubleQuoted, listColumns, literal, script, STAGED } from './dialect.ts';
import { extensionOf, folderOf, isFolder, type Source } from './source.ts';

const LINES = doubleQuoted('_millrace_lines');
/** Number of a line among all that are read. */
const NUMBER = doubleQuoted('_millrace_line');

/** A text above some 2,700 bytes fits into no index. */
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
  deletes: 'using',
  rowId: 'ctid',
  // It reads no Parquet.
  reads: 'ndjson',
  // Else it says of each table and index that is there already that it is.
  preamble: 'SET client_min_messages = warning;',
  addsMissing: true,
  quote: doubleQuoted,
  literal: asciiLiteral,
  location: (table) => `./${table}/`,
  storage: () => '',
  // The first for a load, which finds the rows of an event by it, the second for erasures and for questions.
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
      // What a command of the shell could not read is no reason to go on.
      String.raw`\set ON_ERROR_STOP on`,
      'BEGIN;',
      `SET LOCAL TIME ZONE 'UTC';`,
      `CREATE TEMPORARY TABLE ${LINES} (${NUMBER} bigint GENERATED ALWAYS AS IDENTITY, line text) ON COMMIT DROP;`,
      // Neither control character can stand in a line of JSON, so each line is one value whatever is in it. Its bytes come in
      // as they are: a character that the database cannot have is no reason to refuse the others.
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

/** A text without letters that psql reads in its client's encoding, whatever that is. */
function asciiLiteral(text: string): string {
  if (/^\p{ASCII}*$/u.test(text)) return literal(text);
  const escaped = text.replaceAll('\\', '\\\\').replaceAll(/\P{ASCII}/gu, (letter) => {
    return `\\+${(letter.codePointAt(0) ?? 0).toString(16).padStart(6, '0')}`;
  });
  return `U&${literal(escaped)}`;
}

/** Reads each line once, whatever the number of columns. */
function stagedRows(table: TableDefinition): string {
  const types = columnsOf(table).map(({ name, type }) => `${doubleQuoted(name)} ${postgres.types[type]}`);
  const line = `convert_from(convert_to(line, getdatabaseencoding()), 'UTF8')`;
  return [
    `INSERT INTO ${doubleQuoted(STAGED)} (\n${listColumns(table, ({ name }) => doubleQuoted(name))},\n  ${NUMBER}\n)`,
    `SELECT\n${listColumns(table, ({ name }) => `row_.${doubleQuoted(name)}`)},\n  ${NUMBER}`,
    `FROM ${LINES}, json_to_record(${line}::json) AS row_ (\n  ${types.join(',\n  ')}\n)`,
  ].join('\n');
}

/**
 * Inserts all rows; where the database does not take one of them, each by itself, with a warning that names those it refuses.
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

/** A plain file as it is; everything else through the program that unpacks it. */
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

/** One word for a shell, with what it stands for. */
function shell(text: string): string {
  return /^[\w./=:@%+-]*$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
