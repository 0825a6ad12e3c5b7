import { columnsOf, type Column, type ColumnType, type TableDefinition } from '../../definition.ts';
import type { Source } from './source.ts';

/** Where rows wait, in the types of their table, until they take the place of others. */
export const STAGED = '_millrace_rows';

/** How a warehouse is talked to. */
export interface Dialect {
  /** Shown in headings. */
  readonly title: string;
  readonly types: Readonly<Record<ColumnType, string>>;
  /** How rows are removed that stand in another table too: `DELETE … USING`, or `WHERE EXISTS`. */
  readonly deletes: 'using' | 'exists';
  /** What the warehouse itself calls a row by, where it has such a name. */
  readonly rowId?: string;
  /** What is read when nobody says what the files are. Default: Parquet. */
  readonly reads?: Source['format'];
  /** A name that may be a reserved word, and is not to lose its case. */
  quote(name: string): string;
  /** Where its tables are, in statements that do not leave it to the session. */
  readonly schema?: string;
  /** A text. */
  literal(text: string): string;
  /** Type of a column in the table, when its type alone does not tell. */
  typeOf?(column: Column, table: TableDefinition): string;
  /** Folder of the rows when nothing is said: to be replaced. */
  location(table: string): string;
  /** What stands behind the columns of a new table: how its rows are divided and sorted. */
  storage(table: TableDefinition): string;
  /** What a script begins with. */
  readonly preamble?: string;
  /** `ADD COLUMN` can be told to do nothing where the column is there. */
  readonly addsMissing?: true;
  /**
   * Statements that follow the one that makes the table.
   * @param on the table's name in SQL
   */
  indexes?(table: TableDefinition, on: string): readonly string[];
  /** What its indexes have in place of a text, which can be too long for them. */
  hashed?(text: string): string;
  /** The first moment of a day, in UTC. */
  startOf?(day: string): string;
  /** The statements that bring rows into the table, in order; run again, they change nothing. */
  load(table: TableDefinition, document: TableDefinition, source: Source): string;
}

/** A table or a view, by the name that statements have for it. */
export function tableName({ quote, schema }: Pick<Dialect, 'quote' | 'schema'>, name: string): string {
  return schema === undefined ? quote(name) : `${quote(schema)}.${quote(name)}`;
}

export function doubleQuoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text in SQL of the standard, where a backslash is a character like others. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A text where a backslash takes the meaning from the next character. */
export function escaped(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
}

/** The columns, each made by `make`, one a line. */
export function listColumns(table: TableDefinition, make: (column: Column) => string): string {
  return columnsOf(table)
    .map((column) => `  ${make(column)}`)
    .join(',\n');
}

/** A row's place among those that are the same by these expressions, the newest by `times` first: 1 is the newest. */
export function rankOver(same: readonly string[], times: readonly string[]): string {
  const order = times.map((time) => `${time} DESC NULLS LAST`).join(', ');
  return `row_number() OVER (\n    PARTITION BY ${same.join(', ')}\n    ORDER BY ${order}\n  ) AS rank_`;
}

/** The rows, of those in `rows_`, that are first by `rank`. @param from the lines of the query behind its columns */
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
