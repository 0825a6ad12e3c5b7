import { stringify } from 'yaml';
import { type Column, columnsOf, LOADED_AT, type TableDefinition } from '../definition.ts';
import type { TableEntry } from '../tables.ts';
import type { Dialect } from './dialects/dialect.ts';
import { arrivalOf, eventColumnsOf, keyOf } from './identity.ts';
import { latestOf } from './latest.ts';
import { descriptionOf } from './schema.ts';

/** Tables of a source, as dbt reads them. */
const SOURCE = 'millrace';
/** dbt warns when a table of events has no newer row. */
const FRESHNESS = { warn_after: { count: 1, period: 'day' } };

type Properties = Readonly<Record<string, unknown>>;

/** The tables and their `_latest` views as a source of dbt, with descriptions, freshness and tests. */
export function dbtSources(entries: readonly TableEntry[], dialect: Dialect): string {
  const tables = entries.flatMap(({ definition }) => {
    const view = definition.key.length === 0 ? [] : [latestView(definition, dialect)];
    return [baseTable(definition), ...view];
  });
  const source = { name: SOURCE, description: 'Rows that millrace loads', tables };
  return stringify({ version: 2, sources: [source] }, { lineWidth: 0 }).trimEnd();
}

function baseTable(definition: TableDefinition): Properties {
  const isOfEvents = eventColumnsOf(definition) !== null;
  return {
    name: definition.name,
    description: definition.description,
    loaded_at_field: arrivalOf(definition),
    freshness: isOfEvents ? FRESHNESS : null,
    columns: columnsOf(definition).map(propertiesOf),
  };
}

function latestView(definition: TableDefinition, dialect: Dialect): Properties {
  const { name, description } = definition;
  return {
    name: latestOf(name),
    description: `${description} The newest version of each row.`,
    data_tests: [
      { unique: { name: `${latestOf(name)}_is_unique`, column_name: keyText(definition, dialect) } },
    ],
    columns: columnsOf(definition).map(propertiesOf),
  };
}

function propertiesOf(column: Column): Properties {
  const isSet = column.required === true || column === LOADED_AT;
  return {
    name: column.name,
    description: descriptionOf(column),
    ...(isSet ? { data_tests: ['not_null'] } : {}),
  };
}

/** An expression with the key as one text: dbt's own test takes one column, and passes over nulls. */
function keyText(definition: TableDefinition, { quote, types }: Dialect): string {
  const parts = keyOf(definition).map((name) => `coalesce(cast(${quote(name)} as ${types.text}), '')`);
  return parts.length === 1 ? (parts[0] ?? '') : `(${parts.join(` || '|' || `)})`;
}
