import { columnsOf, hasRowId, ROW_ID, type TableDefinition } from '../definition.ts';
import { doubleQuoted, tableName } from '../sql/dialects/dialect.ts';
import { parentColumn, spanOf } from '../sql/identity.ts';
import { equal } from '../sql/replace.ts';
import type { Pull } from '../sql/vanished.ts';
import { type Database, LOAD_COLUMN } from './database.ts';
import { ledgerIn } from './ledger.ts';
import type { LoadedTables } from './tables.ts';

const COLUMNS = ['user_id', 'resource', 'table', 'provider', 'since', 'until', 'began_at'] as const;

export async function writePulls(database: Database, load: number, pulls: readonly Pull[]): Promise<void> {
  const names = COLUMNS.map(doubleQuoted).join(', ');
  const values = COLUMNS.map((_, at) => `$${at + 2}`).join(', ');
  const insert = `INSERT INTO ${ledgerIn(database).pulls} (load, ${names}) VALUES ($1, ${values})`;
  for (const pull of pulls) await database.query(insert, [load, ...COLUMNS.map((name) => pull[name])]);
}

/**
 * Removes rows that have vanished at the service: the newest pull of their user, table, provider and range began after they were
 * received, and it does not have them. Rows of earlier pulls go also when it has them, so that a table has each item of the service
 * once. Rows that were received later stay.
 * @param from only rows of this load and later ones; 0 for all
 * @returns number of removed rows, without those nested in them
 */
export async function removeVanished(
  database: Database,
  tables: LoadedTables,
  from: number,
): Promise<number> {
  const { sql } = database;
  const { quote, rowId = '' } = sql;
  const { pulls, vanished: gone } = ledgerIn(database);
  const named = await database.query(`SELECT DISTINCT "table" FROM ${pulls}`);
  const definitions = new Map(tables.entries.map(({ definition }) => [definition.name, definition]));
  const remove = ({ name }: TableDefinition, ids: string): Promise<void> =>
    database.run(`DELETE FROM ${tableName(sql, name)} WHERE ${rowId} IN (${ids})`);
  let removed = 0;
  for (const definition of named.flatMap(([name]) => definitions.get(String(name)) ?? [])) {
    const vanished = vanishedFrom(definition, database, from);
    if (vanished === null) continue;
    const [[count] = []] = await database.query(`SELECT count(*) FROM (${vanished}) AS gone_`);
    if (Number(count) === 0) continue;
    // Not a temporary one: a database can forbid these.
    await database.run(`CREATE TABLE ${gone} AS ${vanished}`);
    for (const { table } of definition.nested ?? []) {
      const same = definition.key.map((name) => [parentColumn(table, name), `gone_.${quote(name)}`] as const);
      if (!definitions.has(table.name) || same.some(([own]) => own === null)) continue;
      await remove(
        table,
        `SELECT nested_.${rowId} FROM ${tableName(sql, table.name)} AS nested_ JOIN ${gone} AS gone_
          ON ${same.map(([own, parent]) => `nested_.${quote(own ?? '')} = ${parent}`).join(' AND ')}
          AND coalesce(nested_.${LOAD_COLUMN}, 0) = load_ AND coalesce(nested_._event_id, '') = coalesce(event_, '')`,
      );
    }
    await remove(definition, `SELECT id_ FROM ${gone}`);
    await database.run(`DROP TABLE ${gone}`);
    removed += Number(count);
  }
  return removed;
}

/** Query of the vanished rows of a table; null for a table without events or a key. */
function vanishedFrom(definition: TableDefinition, database: Database, from: number): string | null {
  const { sql } = database;
  const { quote, rowId = '' } = sql;
  const columns = new Map(columnsOf(definition).map((column) => [column.name, column]));
  const of = (row: string) => (name: string) => `${row}.${quote(name)}`;
  const own = (...names: readonly string[]): string => {
    const found = names.filter((name) => columns.has(name)).map(of('rows_'));
    return found.length === 0 ? 'NULL' : `coalesce(${found.join(', ')})`;
  };
  const key = definition.key.flatMap((name) => columns.get(name) ?? []);
  if (!columns.has('_event_id') || key.length === 0) return null;
  const span = spanOf(definition);
  const [begin, end] = [span?.first ?? [], span?.last ?? []].map((names) => {
    return `CAST(${own(...names)} AS ${sql.types.timestamp})`;
  });
  const provider = own('source_provider', 'source_slug');
  const resource = columns.has('resource') ? `AND pull_.resource = rows_.resource` : '';
  const table = tableName(sql, definition.name);
  const same = key.map((column) => equal(column, of('covered_'), of('same_'), sql));
  return `
    SELECT * FROM (
      SELECT rows_.${rowId} AS id_, coalesce(rows_.${LOAD_COLUMN}, 0) AS load_, rows_._event_id AS event_,
        ${hasRowId(definition) ? `rows_.${ROW_ID.name}` : 'NULL'} AS row_id_, coalesce(rows_._received_at, rows_._loaded_at) AS at_,
        ${key.map(({ name }) => of('rows_')(name)).join(', ')}, pull_.load AS pull_, pull_.began_at AS began_at_,
        row_number() OVER (PARTITION BY rows_.${rowId} ORDER BY pull_.began_at DESC, pull_.load DESC) AS rank_
      FROM ${table} AS rows_ JOIN ${ledgerIn(database).pulls} AS pull_
        ON pull_.user_id = rows_.user_id AND pull_."table" = ${sql.literal(definition.name)} ${resource}
        AND (pull_.provider IS NULL OR pull_.provider = ${provider})
        AND (pull_.since IS NULL OR ${begin} >= pull_.since) AND (pull_.until IS NULL OR ${end} < pull_.until)
      ${from === 0 ? '' : `WHERE rows_.${LOAD_COLUMN} >= ${from}`}
    ) AS covered_
    WHERE rank_ = 1 AND load_ <> pull_ AND at_ < began_at_ AND (event_ IS NULL OR (row_id_ IS NULL AND NOT EXISTS (
      SELECT 1 FROM ${table} AS same_ WHERE same_.${LOAD_COLUMN} = pull_ AND ${same.join(' AND ')}
    )))`;
}
