import { markdownTable } from './markdown.ts';
import { type Column, columnsOf, type TableDefinition } from '../../src/tables/definition.ts';
import { DIALECTS } from '../../src/tables/sql/dialects/registry.ts';
import { DECIMAL_SCALE, DECIMAL_WHOLE } from '../../src/tables/shape/fit.ts';
import { latestOf } from '../../src/tables/sql/latest.ts';
import { TABLES } from '../../src/tables/tables.ts';

/** Every table with its columns, as Markdown. */
export function tableReference(): string {
  return [...TABLES.values()].map(({ definition, document }) => section(definition, document)).join('\n\n');
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

function section(definition: TableDefinition, document: TableDefinition): string {
  const { name, description, key } = definition;
  const view =
    key.length === 0
      ? 'There is no view of the latest rows: nothing tells rows of the same thing.'
      : `Known by ${key.map(code).join(', ')}. ${latest(definition, document)}`;
  const rows = columnsOf(definition).map((column) => [
    code(column.name),
    column.type,
    column.required === true ? 'always' : '',
    originOf(column),
    column.unit === undefined ? column.description : `${column.description} [${column.unit}]`,
  ]);
  const heading = ['Column', 'Type', 'Set', 'From', 'What it is'];
  return [`### ${name}`, description, view, markdownTable(heading, rows)].join('\n\n');
}

function latest(definition: TableDefinition, document: TableDefinition): string {
  const view = code(latestOf(definition.name));
  if (definition !== document && document.ownRows !== false)
    return `${view} has the rows of the documents in ${code(latestOf(document.name))}.`;
  const by = definition.newest === undefined ? '' : `the newest ${code(definition.newest)} wins, then `;
  const received = definition.events?.member === 'data' ? `${code('_received_at')}, then ` : '';
  return `${view} has one row of each: ${by}the newest ${received}${code('_loaded_at')}.`;
}

function originOf({ from, older }: Column): string {
  if (typeof from === 'string')
    return [from, older]
      .filter((path) => (path ?? '') !== '')
      .map((path) => code(path ?? ''))
      .join(', or ');
  if ('envelope' in from) return 'the event';
  if ('parent' in from) return `${code(from.parent)} of the document`;
  if (from.of === 'repetition') return 'rows before it with the same key';
  if (from.of === 'row') return 'the event or file';
  return from.of === 'key' ? 'name in the map' : 'position';
}

function code(text: string): string {
  return `\`${text}\``;
}
