import { columnsOf, hasRowId, ROW_ID, type TableDefinition } from '../definition.ts';
import { tableName } from '../sql/dialects/dialect.ts';
import { parentColumn } from '../sql/identity.ts';
import { equal } from '../sql/replace.ts';
import { type Database, LOAD_COLUMN } from './database.ts';
import { ledgerIn } from './ledger.ts';
import type { LoadedTables } from './tables.ts';

/** A whole answer of the service: what a user had in a range of time when the pull began. */
export interface Pull {
  readonly user_id: string;
  readonly resource: string;
  readonly table: string;
  /** Null for all providers. */
  readonly provider: string | null;
  /** Begin of the range, ISO 8601. */
  readonly since: string;
  /** End of the range, which is not included. */
  readonly until: string;
  readonly began_at: string;
}

const COLUMNS = ['user_id', 'resource', 'table', 'provider', 'since', 'until', 'began_at'] as const;

/** Pulls in one statement. */
const PULLS = 500;

export async function writePulls(database: Database, load: number, pulls: readonly Pull[]): Promise<void> {
  const { quote, literal } = database.sql;
  const names = COLUMNS.map(quote).join(', ');
  for (let at = 0; at < pulls.length; at += PULLS) {
    const rows = pulls.slice(at, at + PULLS).map((pull) => {
      const values = COLUMNS.map((name) => pull[name]).map((value) =>
        value === null ? 'NULL' : literal(value),
      );
      return `(${load}, ${values.join(', ')})`;
    });
    await database.run(`INSERT INTO ${ledgerIn(database).pulls} (load, ${names}) VALUES ${rows.join(',\n')}`);
  }
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
  { entries }: LoadedTables,
  from: number,
): Promise<number> {
  const { sql } = database;
  const rowId = sql.rowId ?? '';
  const named = await database.query(`SELECT DISTINCT "table" FROM ${ledgerIn(database).pulls}`);
  const definitions = new Map(entries.map(({ definition }) => [definition.name, definition]));
  let removed = 0;
  for (const definition of named.flatMap(([name]) => definitions.get(String(name)) ?? [])) {
    const vanished = vanishedFrom(definition, database, from);
    if (vanished === null) continue;
    const [[count] = []] = await database.query(`SELECT count(*) FROM (${vanished}) AS gone_`);
    if (Number(count) === 0) continue;
    for (const { table } of definition.nested ?? []) {
      const inside = definitions.has(table.name) ? nestedIn(definition, table, vanished, database) : null;
      if (inside !== null)
        await database.run(`DELETE FROM ${tableName(sql, table.name)} WHERE ${rowId} IN (${inside})`);
    }
    await database.run(
      `DELETE FROM ${tableName(sql, definition.name)} WHERE ${rowId} IN (SELECT id_ FROM (${vanished}) AS gone_)`,
    );
    removed += Number(count);
  }
  return removed;
}

/** Query of the vanished rows of a table; null for a table without users, key or time. */
function vanishedFrom(definition: TableDefinition, database: Database, from: number): string | null {
  const { sql } = database;
  const { quote, rowId = '' } = sql;
  const columns = new Map(columnsOf(definition).map((column) => [column.name, column]));
  const own = (names: readonly string[]): string[] =>
    names.filter((name) => columns.has(name)).map((name) => `rows_.${quote(name)}`);
  const times = own(columns.has('calendar_date') ? ['calendar_date'] : ['timestamp', 'start_time']);
  const providers = own(['source_provider', 'source_slug']);
  if (times.length === 0 || !columns.has('user_id') || definition.key.length === 0) return null;
  const at = `CAST(${first(times)} AS ${sql.types.timestamp})`;
  const covers = [
    `pull_.user_id = rows_.${quote('user_id')}`,
    `pull_."table" = ${sql.literal(definition.name)}`,
    ...(columns.has('resource') ? [`pull_.resource = rows_.${quote('resource')}`] : []),
    providers.length === 0
      ? 'pull_.provider IS NULL'
      : `(pull_.provider IS NULL OR pull_.provider = ${first(providers)})`,
    `${at} >= pull_.since`,
    `${at} < pull_.until`,
  ];
  const key = definition.key.flatMap((name) => columns.get(name) ?? []);
  const event = columns.has('_event_id') ? `rows_.${quote('_event_id')}` : 'CAST(NULL AS text)';
  const id = hasRowId(definition) ? `rows_.${quote(ROW_ID.name)}` : 'CAST(NULL AS text)';
  const same = [
    `same_.${LOAD_COLUMN} = covered_.pull_`,
    ...key.map((column) =>
      equal(
        column,
        (name) => `covered_.${quote(name)}`,
        (name) => `same_.${quote(name)}`,
        sql,
      ),
    ),
  ];
  return `
    SELECT * FROM (
      SELECT rows_.${rowId} AS id_, coalesce(rows_.${LOAD_COLUMN}, 0) AS load_, ${event} AS event_, ${id} AS row_id_,
        ${first(own(['_received_at', '_loaded_at']))} AS at_, ${key.map(({ name }) => `rows_.${quote(name)}`).join(', ')},
        pull_.load AS pull_, pull_.began_at AS began_at_,
        row_number() OVER (PARTITION BY rows_.${rowId} ORDER BY pull_.began_at DESC, pull_.load DESC) AS rank_
      FROM ${tableName(sql, definition.name)} AS rows_
      JOIN ${ledgerIn(database).pulls} AS pull_ ON ${covers.join(' AND ')}
      ${from === 0 ? '' : `WHERE rows_.${LOAD_COLUMN} >= ${from}`}
    ) AS covered_
    WHERE rank_ = 1 AND load_ <> pull_ AND at_ < began_at_ AND (event_ IS NULL OR (row_id_ IS NULL AND NOT EXISTS (
      SELECT 1 FROM ${tableName(sql, definition.name)} AS same_ WHERE ${same.join(' AND ')}
    )))`;
}

/** Query of the ids of the rows nested in vanished ones; null where they do not name the row around. */
function nestedIn(
  document: TableDefinition,
  table: TableDefinition,
  vanished: string,
  { sql }: Database,
): string | null {
  const { quote, rowId = '' } = sql;
  const parents = document.key.map((name) => [parentColumn(table, name), name] as const);
  const hasEvent = columnsOf(table).some(({ name }) => name === '_event_id');
  const event = hasEvent ? `coalesce(nested_.${quote('_event_id')}, '')` : `''`;
  const same = parents.flatMap(([own, name]) =>
    own === null ? [] : [`nested_.${quote(own)} = gone_.${quote(name)}`],
  );
  if (same.length < parents.length) return null;
  return `
    SELECT nested_.${rowId} FROM ${tableName(sql, table.name)} AS nested_ JOIN (${vanished}) AS gone_
      ON ${same.join(' AND ')} AND coalesce(nested_.${LOAD_COLUMN}, 0) = gone_.load_ AND ${event} = coalesce(gone_.event_, '')`;
}

function first(values: readonly string[]): string {
  return values.length === 1 ? (values[0] ?? '') : `coalesce(${values.join(', ')})`;
}
