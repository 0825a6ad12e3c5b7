import { columnsOf, type Column, type ColumnType, type TableDefinition } from '../../definition.ts';
import type { Source } from './source.ts';

/** Name of the table of staged rows, before they replace others. */
export const STAGED = '_millrace_rows';

/** How statements for a warehouse are written. */
export interface Dialect {
  /** Its name in headings. */
  readonly title: string;
  readonly types: Readonly<Record<ColumnType, string>>;
  /** It has no `DELETE … USING` for rows that are in another table too, but `WHERE EXISTS`. */
  readonly lacksUsing?: true;
  /** The warehouse's own id of a row, where it has one. */
  readonly rowId?: string;
  /** Format of files whose names do not say it. Default: Parquet. */
  readonly reads?: Source['format'];
  /** A name in quotes: it may be a reserved word, and keeps its case. */
  quote(name: string): string;
  /** Schema of the tables, in statements that do not leave it to the session. */
  readonly schema?: string;
  /** A text in quotes. */
  literal(text: string): string;
  /** Type of a column in the table, where `types` is not enough. */
  typeOf?(column: Column): string;
  /** Placeholder for the folder of the rows. */
  location(table: string): string;
  /** Clauses after the columns of a new table: how its rows are divided and sorted. */
  storage(table: TableDefinition): string;
  /** How CREATE TABLE describes a column, and the table after its storage. Without it there is `COMMENT ON`. */
  readonly describedBy?: { column(literal: string): string; table(literal: string): string };
  /** Begin of a script. */
  readonly preamble?: string;
  /** It has `ADD COLUMN IF NOT EXISTS`. */
  readonly addsMissing?: true;
  /**
   * Statements that make the indexes of a table.
   * @param on the table's name in SQL
   */
  indexes?(table: TableDefinition, on: string): readonly string[];
  /** The hash that its indexes have instead of a text, which can be too long for them. */
  hashed?(text: string): string;
  /** A moment of a day in UTC, the first one by default. */
  startOf?(day: string, time?: string): string;
  /** The type of values of this type or null, where types do not have null by themselves. */
  nullable?(type: string): string;
  /** One value that sorts as these columns do, the greatest first and nulls last; where ranks by one value are faster. */
  together?(columns: readonly string[]): string;
  /** Rows of values are compared with structs. */
  readonly comparesStructs?: true;
  /** Statements that load rows into the table; repeating them changes nothing. */
  load(table: TableDefinition, document: TableDefinition, source: Source): string;
}

/** Name of a table or a view in statements. */
export function tableName({ quote, schema }: Pick<Dialect, 'quote' | 'schema'>, name: string): string {
  return schema === undefined ? quote(name) : `${quote(schema)}.${quote(name)}`;
}

export function doubleQuoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text in quotes of standard SQL, where a backslash is a character like others. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A text in quotes where a backslash escapes the next character. */
export function escaped(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
}

/** The columns, one a line. */
export function listColumns(table: TableDefinition, write: (name: string, column: Column) => string): string {
  return columnsOf(table)
    .map((column) => `  ${write(column.name, column)}`)
    .join(',\n');
}

/** A column `rank_`: 1 for the newest row by `times` of those with the same values of these expressions, 2 for the next. */
export function rankOver(same: readonly string[], times: readonly string[]): string {
  const order = times.map((time) => `${time} DESC NULLS LAST`).join(', ');
  return `row_number() OVER (\n    PARTITION BY ${same.join(', ')}\n    ORDER BY ${order}\n  ) AS rank_`;
}

/** Query of the rows whose `rank_` is 1. @param from lines of the query after its columns, with the rows as `rows_` */
export function firstRows(select: string, rank: string, from: readonly string[]): string {
  return [
    select,
    'FROM (',
    `  SELECT rows_.*, ${rank}`,
    ...from.map((line) => `  ${line}`),
    ') AS ranked_',
    'WHERE rank_ = 1',
  ].join('\n');
}

/** Statements as one script. */
export function script(statements: readonly string[]): string {
  return statements.map((statement) => `${statement};`).join('\n');
}
