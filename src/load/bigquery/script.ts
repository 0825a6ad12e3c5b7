import { columnsOf, type TableDefinition } from '../../warehouse/definition.ts';
import { bigquery } from '../../warehouse/sql/dialects/bigquery.ts';
import { script } from '../../warehouse/sql/dialects/dialect.ts';
import { schemaOf } from '../../warehouse/sql/schema.ts';
import { LOAD_COLUMN } from '../database.ts';
import type { Load } from '../ledger.ts';
import { shapeOf, viewsOf, type LoadedTables } from '../tables.ts';
import { OVERTAKEN } from './failure.ts';
import type { StagedColumn } from './client.ts';

const { quote, literal, types } = bigquery;

/**
 * The ledger: as in other databases, but for `_millrace_state`, whose one row counts the loads. A script begins where it
 * was planned for and moves the position on, so that of two loads at the same time one fails, as no lock is to be had.
 */
export const STATE = '_millrace_state';
export const LEDGER = script([
  'CREATE TABLE IF NOT EXISTS _millrace_tables (name STRING NOT NULL, shape STRING NOT NULL)',
  `CREATE TABLE IF NOT EXISTS _millrace_loads (load INT64 NOT NULL, archive STRING NOT NULL, file STRING NOT NULL, sha256 STRING NOT NULL,
  shape STRING NOT NULL, records INT64 NOT NULL, sealed INT64 NOT NULL, destroyed INT64 NOT NULL, loaded_at TIMESTAMP NOT NULL)`,
  'CREATE TABLE IF NOT EXISTS _millrace_events (event STRING NOT NULL, load INT64 NOT NULL)',
  'CREATE TABLE IF NOT EXISTS _millrace_duplicates (event STRING NOT NULL, load INT64 NOT NULL)',
  // The last one, and with its row at once: when it is there, all are.
  `CREATE TABLE IF NOT EXISTS ${STATE} AS SELECT 0 AS position, 0 AS revived`,
]);

export const READ_TABLES = 'SELECT name, shape FROM _millrace_tables';
export const READ_STATE = `SELECT position, revived FROM ${STATE}`;
/** Loads and position of one moment: the position comes first, as load 0. */
export const READ_LOADS = `SELECT position, 0 AS load, '' AS archive, '' AS file, '' AS sha256, '' AS shape, 0 AS records, 0 AS sealed, 0 AS destroyed
FROM ${STATE}
UNION ALL
SELECT 0, load, archive, file, sha256, shape, records, sealed, destroyed
FROM _millrace_loads
ORDER BY load`;

export function renameScript(from: string, to: string): string {
  return `UPDATE _millrace_loads SET archive = ${literal(to)} WHERE archive = ${literal(from)}`;
}

/**
 * Makes and completes tables. BigQuery makes none in a transaction, so the ledger is told last: cut short, all of it is
 * done again.
 */
export function tablesScript(
  { entries }: LoadedTables,
  changed: LoadedTables['entries'],
  dataset: string,
): string {
  const made = changed.flatMap((entry) => {
    const { definition } = entry;
    const columns = columnsOf(definition).map(({ name, type }) => [name, types[type]] as const);
    const adds = [...columns, [LOAD_COLUMN, 'INT64'] as const].map(
      ([name, type]) => `ADD COLUMN IF NOT EXISTS ${quote(name)} ${type}`,
    );
    return [
      bare(schemaOf(entry, 'bigquery').createTable),
      `ALTER TABLE ${quote(definition.name)}\n${adds.join(',\n')}`,
    ];
  });
  // A view knows no default dataset.
  const views = viewsOf(entries, 'bigquery').map((view) =>
    bare(view).replaceAll(/\b(VIEW|FROM|JOIN) `(\w+)`/g, `$1 \`${dataset}.$2\``),
  );
  const names = changed.map(({ definition }) => literal(definition.name));
  const rows = changed.map((entry) => `(${literal(entry.definition.name)}, ${literal(shapeOf(entry))})`);
  return script([
    ...made,
    ...views,
    'BEGIN TRANSACTION',
    `DELETE FROM _millrace_tables WHERE name IN (${names.join(', ')})`,
    `INSERT INTO _millrace_tables (name, shape) VALUES ${rows.join(', ')}`,
    'COMMIT TRANSACTION',
  ]);
}

/** Lines of a step: one for each event, which is of no `kind`, and one for each row, of the table that it is for. */
export const STAGED_COLUMNS: readonly StagedColumn[] = [
  { name: 'kind', type: 'STRING' },
  { name: 'event', type: 'STRING' },
  { name: 'load', type: 'INT64' },
  { name: 'line', type: 'STRING' },
];

interface Staged {
  readonly table: string;
  readonly lines: number;
  /** Names of the tables that there are rows for. */
  readonly kinds: ReadonlySet<string>;
}

export interface Step {
  readonly tables: LoadedTables;
  /** Where the ledger stood when the step was planned, and where it is to stand. */
  readonly from: number;
  readonly to: number;
  /** Loads whose rows go. */
  readonly removed: readonly number[];
  readonly loads: readonly Load[];
  /** Null for a step without any line. */
  readonly staged: Staged | null;
}

/** All of a step in one transaction. @returns a script whose last rows are how many lines of each kind came in */
export function stepScript({ tables, from, to, removed, loads, staged }: Step): string {
  return script([
    'BEGIN TRANSACTION',
    insist(`EXISTS (SELECT 1 FROM ${STATE} WHERE position = ${from})`, OVERTAKEN),
    // At once: what changes the same row meanwhile is in conflict with this from here on.
    `UPDATE ${STATE} SET position = ${to}, revived = 0 WHERE TRUE`,
    ...removal(tables, removed),
    ...(staged === null ? [] : arrival(tables, staged)),
    ...(loads.length === 0 ? [] : [writeLoads(loads)]),
    ...(removed.length === 0 ? [] : revival()),
    'COMMIT TRANSACTION',
    staged === null
      ? `SELECT '' AS kind, 0 AS lines`
      : `SELECT s.kind, COUNT(*) AS lines\nFROM ${quote(staged.table)} AS s JOIN _millrace_own AS o ON o.event = s.event AND o.load = s.load\nGROUP BY s.kind`,
  ]);
}

function removal({ names }: LoadedTables, removed: readonly number[]): string[] {
  if (removed.length === 0) return [];
  const list = removed.join(', ');
  return [
    ...names.map((table) => `DELETE FROM ${table} WHERE ${LOAD_COLUMN} IN (${list})`),
    ...['_millrace_events', '_millrace_duplicates', '_millrace_loads'].map(
      (table) => `DELETE FROM ${table} WHERE load IN (${list})`,
    ),
  ];
}

/** Each event's rows come with the first load that has it, unless an earlier step had it already. */
function arrival({ entries }: LoadedTables, { table, lines, kinds }: Staged): string[] {
  const staged = quote(table);
  return [
    insist(
      `(SELECT COUNT(*) FROM ${staged}) = ${lines}`,
      'millrace: the staged rows are not those of this step',
    ),
    `CREATE TEMP TABLE _millrace_own AS
SELECT s.event, MIN(s.load) AS load
FROM ${staged} AS s LEFT JOIN _millrace_events AS e ON e.event = s.event
WHERE s.kind = '' AND e.event IS NULL
GROUP BY s.event`,
    `INSERT INTO _millrace_duplicates (event, load)
SELECT DISTINCT s.event, s.load
FROM ${staged} AS s LEFT JOIN _millrace_own AS o ON o.event = s.event AND o.load = s.load
WHERE s.kind = '' AND o.event IS NULL`,
    'INSERT INTO _millrace_events (event, load) SELECT event, load FROM _millrace_own',
    ...entries.flatMap(({ definition }) =>
      kinds.has(definition.name) ? insertRows(definition, staged) : [],
    ),
  ];
}

function insertRows(definition: TableDefinition, staged: string): string {
  const columns = columnsOf(definition);
  const values = columns.map(({ name, type }) => {
    const path = `'$.${name}'`;
    // From its text, so that no digit is lost on the way.
    if (type === 'json') return `PARSE_JSON(JSON_QUERY(s.line, ${path}), wide_number_mode => 'round')`;
    const value = `JSON_VALUE(s.line, ${path})`;
    return type === 'text' ? value : `CAST(${value} AS ${types[type]})`;
  });
  return `INSERT INTO ${quote(definition.name)} (${columns.map(({ name }) => quote(name)).join(', ')}, ${LOAD_COLUMN})
SELECT
  ${[...values, 's.load'].join(',\n  ')}
FROM ${staged} AS s JOIN _millrace_own AS o ON o.event = s.event AND o.load = s.load
WHERE s.kind = ${literal(definition.name)}`;
}

function writeLoads(loads: readonly Load[]): string {
  const rows = loads.map(({ load, archive, file, sha256, shape, records, sealed, destroyed }) => {
    const texts = [archive, file, sha256, shape].map(literal).join(', ');
    return `(${load}, ${texts}, ${records}, ${sealed}, ${destroyed}, CURRENT_TIMESTAMP())`;
  });
  return `INSERT INTO _millrace_loads (load, archive, file, sha256, shape, records, sealed, destroyed, loaded_at)\nVALUES ${rows.join(',\n')}`;
}

/** What was removed may be held by another file, which was passed over as the event was there already. */
function revival(): string[] {
  const held =
    '_millrace_duplicates AS d LEFT JOIN _millrace_events AS e ON e.event = d.event WHERE e.event IS NULL';
  return [
    `UPDATE ${STATE} SET revived = (SELECT COUNT(DISTINCT d.load) FROM ${held}) WHERE TRUE`,
    `UPDATE _millrace_loads SET sha256 = '' WHERE load IN (SELECT d.load FROM ${held})`,
  ];
}

/** Ends the script, and with it the transaction, where something does not hold. */
function insist(condition: string, otherwise: string): string {
  return `SELECT IF(${condition}, TRUE, ERROR(${literal(otherwise)}))`;
}

/** Without the `;` at its end. */
function bare(statement: string): string {
  return statement.replace(/;\s*$/, '');
}
