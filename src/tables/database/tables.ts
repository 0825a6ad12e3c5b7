import { hash } from 'node:crypto';
import { MillraceError } from '../../core/errors.ts';
import {
  allColumnsOf,
  columnsOf,
  hasRowId,
  identityOf,
  ROW_ID,
  type TableDefinition,
} from '../definition.ts';
import { type Dialect, doubleQuoted, tableName } from '../sql/dialects/dialect.ts';
import { latestOf } from '../sql/latest.ts';
import { addColumns, schemaOf } from '../sql/schema.ts';
import type { TableEntry, Tables } from '../tables.ts';
import { changeColumns, columnChanges, presentColumns } from './columns.ts';
import { LOAD_COLUMN, type Database } from './database.ts';
import { ledgerIn } from './ledger.ts';

/** The tables that are kept up to date in a database. */
export interface LoadedTables {
  /** All tables that there are. */
  readonly known: Tables;
  readonly entries: readonly TableEntry[];
  /** Their names, quoted. */
  readonly names: readonly string[];
  /** Hash of all their columns: files that were loaded with another one are loaded again. */
  readonly shape: string;
}

/**
 * Makes the wanted tables, and adds new columns to those that exist: every load keeps them all up to date. Runs in the caller's
 * transaction.
 * @throws MillraceError usage when a table was loaded whose definition is not known now, or gives a column a type that
 *   could lose values
 */
export async function ensureTables(
  database: Database,
  known: Tables,
  wanted: readonly string[],
): Promise<LoadedTables> {
  const { sql } = database;
  const ledger = ledgerIn(database);
  const before = await notedTables(database);
  const entries = entriesOf(known, [...before.keys(), ...wanted]);
  const present = await presentColumns(database);
  const due = entries.flatMap((entry) => {
    const { definition } = entry;
    const columns = present.get(definition.name);
    refuseLess(definition, columns ?? []);
    const isNoted = before.get(definition.name) === shapeOf(entry);
    const changes = columnChanges(definition, columns ?? [], database, isNoted);
    return isNoted && columns !== undefined && changes.length === 0 ? [] : [{ entry, changes, isNoted }];
  });
  if (due.length > 0) {
    // A view's columns cannot be changed. Views of nested tables read the view of their document, and go first.
    for (const { definition } of parentsFirst(entries).toReversed())
      await database.run(`DROP VIEW IF EXISTS ${tableName(sql, latestOf(definition.name))}`);
    for (const { entry, changes } of due) {
      await changeColumns(database, changes);
      await createTable(database, entry);
    }
    // The user has dropped or changed the table, so all files are loaded again.
    if (due.some(({ isNoted }) => isNoted)) await database.run(`UPDATE ${ledger.loads} SET sha256 = ''`);
    for (const view of viewsOf(entries, sql)) await database.run(view);
  }
  const names = entries.map(({ definition }) => tableName(sql, definition.name));
  return { known, entries, names, shape: shapeOfAll(entries) };
}

/** The tables that every load keeps up to date, each with the hash of its columns when it was made. */
export async function notedTables(database: Database): Promise<ReadonlyMap<string, string>> {
  const rows = await database.query(`SELECT name, shape FROM ${ledgerIn(database).tables} ORDER BY name`);
  return new Map(rows.map(([name, shape]) => [String(name), String(shape)]));
}

/** @throws MillraceError usage for a table whose definition is not known */
export function entriesOf(known: Tables, names: readonly string[]): TableEntry[] {
  return [...new Set(names)].sort().map((name) => {
    const entry = known.get(name);
    if (entry !== undefined) return entry;
    throw new MillraceError(
      'usage',
      `the database has the table ${name}, which has no definition here (--tables)`,
    );
  });
}

/** The `shape` of loads into these tables. */
export function shapeOfAll(entries: readonly TableEntry[]): string {
  return sha(entries.map(shapeOf).join(' '));
}

/** Files would be loaded again without the values of columns that are not wanted. @throws MillraceError usage */
function refuseLess(definition: TableDefinition, present: readonly { readonly name: string }[]): void {
  const { only } = definition;
  if (only === undefined) return;
  const known = new Set(allColumnsOf(definition).map(({ name }) => name));
  const lost = present.map(({ name }) => name).filter((name) => known.has(name) && !only.includes(name));
  if (lost.length === 0) return;
  throw new MillraceError(
    'usage',
    `the table ${definition.name} has columns that --columns leaves out, and would lose their values: ${lost.join(', ')}`,
  );
}

/** Statements that make the views of the newest versions, each after the one that it reads. */
function viewsOf(entries: readonly TableEntry[], dialect: Dialect): string[] {
  return parentsFirst(entries).flatMap((entry) => {
    const { createView } = schemaOf(entry, dialect);
    const { document } = entry;
    const readable = document.ownRows === false || entries.some(({ definition }) => definition === document);
    return createView !== null && readable ? [createView] : [];
  });
}

async function createTable(database: Database, entry: TableEntry): Promise<void> {
  const { definition } = entry;
  const { sql } = database;
  const ledger = ledgerIn(database);
  const table = tableName(sql, definition.name);
  const { createTable: create, createIndexes, describe } = schemaOf(entry, sql);
  await database.run(create);
  // For a table of an earlier version.
  for (const added of addColumns(definition, sql) ?? []) await database.run(added);
  await database.run(`ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS ${LOAD_COLUMN} integer`);
  if (hasRowId(definition) && definition.key.length > 0)
    await database.run(nameEarlierRows(definition, table));
  // After the columns, because they may be of new ones.
  if (createIndexes !== null) await database.run(createIndexes);
  if (describe !== null) await database.run(describe);
  // Rows of a load are stored together, so this small index finds them. DuckDB has such an index by itself.
  if (database.dialect === 'postgres')
    await database.run(
      `CREATE INDEX IF NOT EXISTS ${sql.quote(`${definition.name}_load`)} ON ${table} USING brin (${LOAD_COLUMN})`,
    );
  await database.query(`DELETE FROM ${ledger.tables} WHERE name = $1`, [definition.name]);
  await database.query(`INSERT INTO ${ledger.tables} (name, shape) VALUES ($1, $2)`, [
    definition.name,
    shapeOf(entry),
  ]);
}

/** Statement that gives ids to rows with an unknown key of earlier versions. Rows of files are loaded again, rows of a sink are not. */
function nameEarlierRows(definition: TableDefinition, table: string): string {
  const unknown = identityOf(definition).map((group) => {
    const empty = group.map((name) => `coalesce(CAST(${doubleQuoted(name)} AS text), '') = ''`);
    return `(${empty.join(' AND ')})`;
  });
  return `UPDATE ${table} SET ${ROW_ID.name} = 'earlier ' || CAST(random() AS text)
    WHERE ${ROW_ID.name} IS NULL AND (${unknown.join(' OR ')})`;
}

/** Documents before the tables nested in them. */
function parentsFirst(entries: readonly TableEntry[]): TableEntry[] {
  return [true, false].flatMap((isFirst) =>
    entries.filter(({ definition, document }) => (definition === document) === isFirst),
  );
}

/** A hash of everything that decides about a table's rows. */
function shapeOf({ definition, document }: TableEntry): string {
  const { name, key, newest, events } = definition;
  // A description or a share changes no row.
  const columns = columnsOf(definition).map(({ name: column, type, from, older, required }) => {
    return { column, type, from, older, required };
  });
  const nesting = document.nested?.find(({ table }) => table === definition);
  return sha(JSON.stringify([name, key, newest, events, columns, nesting?.at, nesting?.each]));
}

function sha(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16);
}
