import { MillraceError, messageOf } from '../../core/errors.ts';
import { type Column, columnsOf, type ColumnType, type TableDefinition } from '../definition.ts';
import { tableName } from '../sql/dialects/dialect.ts';
import type { Database } from './database.ts';

/** Types that `information_schema` names in another way than statements do. */
const NAMED: Readonly<Record<string, string>> = {
  timestamptz: 'timestamp with time zone',
  'DECIMAL(38, 18)': 'DECIMAL(38,18)',
  TIMESTAMPTZ: 'TIMESTAMP WITH TIME ZONE',
};

/** A column as the database has it. */
interface PresentColumn {
  readonly name: string;
  /** Null for a type that we never use: the user has changed it, and it stays. */
  readonly type: ColumnType | null;
  /** A row without a value is refused. */
  readonly required: boolean;
}

/** The columns of all tables of the schema, by table. */
export async function presentColumns(
  database: Database,
): Promise<ReadonlyMap<string, readonly PresentColumn[]>> {
  // Names that differ in their case are the same to DuckDB.
  const fold = database.dialect === 'duckdb' ? 'lower' : '';
  const rows = await database.query(
    `SELECT ${fold}(table_name), ${fold}(column_name), CASE WHEN domain_name IS NULL THEN data_type END,
       is_nullable = 'NO' AND column_default IS NULL AND coalesce(is_identity, 'NO') = 'NO'
     FROM information_schema.columns
     WHERE table_catalog = current_database() AND table_schema = coalesce($1, current_schema())`,
    [database.sql.schema ?? null],
  );
  const types = new Map(
    Object.entries(database.sql.types).map(([type, named]) => [NAMED[named] ?? named, type as ColumnType]),
  );
  const columns = rows.map(([table, name, type, required]) => ({
    table: String(table),
    name: String(name),
    type: types.get(String(type)) ?? null,
    required: required === true,
  }));
  return Map.groupBy(columns, ({ table }) => table);
}

/**
 * Statements that give columns the types of their definition, where no value is lost by it.
 * @param isNoted the table was made by this definition: then the user has altered a column of another type, and it stays if it
 *   takes all values
 * @throws MillraceError usage where values could be lost
 */
export function columnChanges(
  definition: TableDefinition,
  present: readonly PresentColumn[],
  { dialect, sql }: Pick<Database, 'dialect' | 'sql'>,
  isNoted: boolean,
): string[] {
  const { quote, types } = sql;
  const alter = `ALTER TABLE ${tableName(sql, definition.name)} ALTER COLUMN`;
  const columns = new Map(columnsOf(definition).map((column) => [column.name, column]));
  const isOther = ({ name, type }: PresentColumn): boolean => {
    const wanted = columns.get(name)?.type ?? type;
    if (type === null || wanted === null || wanted === type) return false;
    return !isNoted || type === 'json' || !keeps(type, wanted);
  };
  const retyped = present.filter(isOther).map(({ name, type }) => {
    const column = columns.get(name) as Column;
    const was = type as ColumnType;
    if (!keeps(column.type, was)) throw refusal(definition, column, was);
    return `${alter} ${quote(name)} TYPE ${types[column.type]} USING ${converted(quote(name), was, column.type, types)}`;
  });
  // The new type may not be allowed in an index. The table's indexes are made again after this.
  const dropped =
    retyped.length > 0 && dialect === 'postgres'
      ? [`DROP INDEX IF EXISTS ${tableName(sql, `${definition.name}_on_key`)}`]
      : [];
  const relaxed = present
    .filter(({ name, required }) => !isNoted && required && columns.get(name)?.required !== true)
    .map(({ name }) => `${alter} ${quote(name)} DROP NOT NULL`);
  return [...dropped, ...retyped, ...relaxed];
}

/** Runs statements. @throws the database's error, with the statement */
export async function changeColumns(database: Database, statements: readonly string[]): Promise<void> {
  for (const statement of statements) {
    try {
      await database.run(statement);
    } catch (error) {
      // A user's view, for example, prevents it, and the database does not name the column.
      if (error instanceof Error) error.message = `${messageOf(error)}: ${statement}`;
      throw error;
    }
  }
}

/** True when a column of one type takes all values of another type. */
function keeps(type: ColumnType, other: ColumnType): boolean {
  if (type === 'text' || type === 'json') return true;
  return (type === 'decimal' && other === 'integer') || (type === 'timestamp' && other === 'date');
}

/** The value of a column in another type. */
function converted(
  column: string,
  from: ColumnType,
  to: ColumnType,
  types: Readonly<Record<ColumnType, string>>,
): string {
  if (to !== 'json') return `CAST(${column} AS ${types[to]})`;
  return from === 'text' || from === 'date' || from === 'timestamp'
    ? // DuckDB would turn null into a JSON null.
      `CASE WHEN ${column} IS NOT NULL THEN to_json(${column}) END`
    : `CAST(CAST(${column} AS ${types.text}) AS ${types.json})`;
}

function refusal(
  { name: table }: TableDefinition,
  { name, type, from }: Column,
  was: ColumnType,
): MillraceError {
  const member = typeof from === 'string' ? `, with \`from: ${from}\`` : '';
  return new MillraceError(
    'usage',
    `table ${table}: column ${name} is ${was} in the database and ${type} in the definition now, which could lose values; ` +
      `give it another name${member}, or DROP TABLE "${table}" CASCADE: the next load makes it again, of all files of its ` +
      'archives, but without rows that came from a sink',
  );
}
