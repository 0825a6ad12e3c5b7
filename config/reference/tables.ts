import { exampleRow } from './example-rows.ts';
import { code, entry, GENERATED, markdownTable, page, wrap } from './markdown.ts';
import { type Column, columnsOf, type TableDefinition } from '../../src/tables/definition.ts';
import { DIALECTS } from '../../src/tables/sql/dialects/registry.ts';
import { DECIMAL_SCALE, DECIMAL_WHOLE } from '../../src/tables/shape/column-types.ts';
import { latestOf } from '../../src/tables/sql/latest.ts';
import type { TableEntry } from '../../src/tables/tables.ts';

const EXAMPLE = 'A made-up row; what it does not name is null:';

/** The page of one table: key, view, columns, and a made-up row. */
export function tablePage(table: TableEntry): string {
  const { definition, document } = table;
  const { name, description, key } = definition;
  const view =
    key.length === 0
      ? 'There is no view of the latest rows: no columns identify a row.'
      : `Identified by ${key.map(code).join(', ')}. ${latest(definition, document)}`;
  const columns = columnsOf(definition).map((column) => {
    const about = [column.type, column.required === true ? 'always set' : '', originOf(column)];
    const unit = column.unit === undefined ? '' : ` [${column.unit}]`;
    const head = `${code(column.name)} (${about.filter(Boolean).join(', ')})`;
    return entry(head, column.description + unit);
  });
  const example = `\`\`\`json\n${exampleRow(table)}\n\`\`\``;
  return page(
    `# Table ${code(name)}`,
    GENERATED,
    wrap(description),
    wrap(view),
    columns.join('\n'),
    EXAMPLE,
    example,
  );
}

/** What each column type is in each warehouse, as Markdown. */
export function typeReference(): string {
  const dialects = Object.values(DIALECTS);
  const types = Object.keys(DIALECTS.duckdb.types) as Column['type'][];
  return markdownTable(
    ['Column type', ...dialects.map(({ title }) => title)],
    types.map((type) => [type, ...dialects.map((dialect) => code(dialect.types[type]))]),
  );
}

/** The values that a decimal column takes, in words. */
export function decimalRule(): string {
  return `A decimal has at most ${DECIMAL_WHOLE} digits in front of the point; beyond ${DECIMAL_SCALE} behind it a warehouse rounds.`;
}

function latest(definition: TableDefinition, document: TableDefinition): string {
  const view = code(latestOf(definition.name));
  if (definition !== document && document.ownRows !== false)
    return `${view} has the rows of the documents in ${code(latestOf(document.name))}.`;
  const by = definition.newest === undefined ? '' : `the newest ${code(definition.newest)} wins, then `;
  const received = definition.events?.member === 'data' ? `${code('_received_at')}, then ` : '';
  return `${view} has one row of each: ${by}the newest ${received}${code('_loaded_at')}.`;
}

/** Empty where the column has the name of the member. */
function originOf({ name, from, older }: Column): string {
  if (from === name && older === undefined) return '';
  if (typeof from === 'string')
    return [from, older]
      .filter((path) => (path ?? '') !== '')
      .map((path) => `from ${code(path ?? '')}`)
      .join(', or ');
  if ('envelope' in from) return 'from the event';
  if ('parent' in from) return `from ${code(from.parent)} of the document`;
  if (from.of === 'repetition') return 'rows before it with the same key';
  if (from.of === 'row') return 'the event or file';
  return from.of === 'key' ? 'name in the map' : 'position';
}
