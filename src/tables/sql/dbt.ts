import { stringify } from 'yaml';
import { columnsOf, LOADED_AT, type TableDefinition } from '../definition.ts';
import type { TableEntry } from '../tables.ts';
import type { Dialect } from './dialects/dialect.ts';
import { arrivalOf, eventColumnsOf, keyOf } from './identity.ts';
import { latestOf } from './latest.ts';
import { descriptionOf } from './schema.ts';

/** dbt warns when a table of events has no newer row. */
const FRESHNESS = { warn_after: { count: 1, period: 'day' } };

/** The tables and their `_latest` views as a source of dbt, with descriptions, freshness and tests. */
export function dbtSources(entries: readonly TableEntry[], dialect: Dialect): string {
  const tables = entries.flatMap(({ definition }) => {
    const { name, description, key } = definition;
    const columns = columnsOf(definition).map((column) => {
      const tests = column.required === true || column === LOADED_AT ? { data_tests: ['not_null'] } : {};
      return { name: column.name, description: descriptionOf(column), ...tests };
    });
    const freshness = eventColumnsOf(definition) === null ? null : FRESHNESS;
    const table = { name, description, loaded_at_field: arrivalOf(definition), freshness, columns };
    if (key.length === 0) return [table];
    const view = latestOf(name);
    const unique = { name: `${view}_is_unique`, column_name: keyText(definition, dialect) };
    const newest = `${description} The newest version of each row.`;
    return [table, { name: view, description: newest, data_tests: [{ unique }], columns }];
  });
  const source = { name: 'millrace', description: 'Rows that millrace loads', tables };
  return stringify(
    { version: 2, sources: [source] },
    { lineWidth: 0, aliasDuplicateObjects: false },
  ).trimEnd();
}

/** An expression with the key as one text: dbt's own test takes one column, and passes over nulls. */
function keyText(definition: TableDefinition, { quote, types }: Dialect): string {
  const parts = keyOf(definition).map((name) => `coalesce(cast(${quote(name)} as ${types.text}), '')`);
  return parts.join(` || '|' || `);
}
