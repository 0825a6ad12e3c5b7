import { z } from 'zod';
import { EVENT_IDS } from '../definition.ts';

const NAME = z
  .string()
  .regex(/^[a-z][a-z0-9_]*$/, 'must be lower-case letters, digits and underscores, a letter first')
  .max(56, 'must have at most 56 characters')
  .refine((name) => !name.endsWith('_latest') && !name.endsWith('_'), 'must not end with _ or _latest');
/** A text for comments of DDL: a line break would end them, and a semicolon confuses some clients. */
const LINE = z
  .string()
  .max(500)
  .regex(/^[^\p{Cc};]*$/u, 'must be one line without a semicolon');
const PATH = z
  .string()
  .regex(/^[^\p{Cc}]+$/u, 'must be names joined with dots')
  .refine((path) => path.split('.').every((name) => name !== ''), 'must be names joined with dots');

const FROM = z.union(
  [PATH, z.strictObject({ parent: NAME }), z.strictObject({ of: z.enum(['position', 'key']) })],
  { error: 'must be a path such as source.provider, {parent: COLUMN}, {of: position} or {of: key}' },
);

const COLUMN = z.strictObject({
  name: NAME,
  type: z.enum(['text', 'integer', 'decimal', 'boolean', 'date', 'timestamp', 'json']),
  from: FROM.optional(),
  required: z.boolean().optional(),
  share: z.number().min(0).max(1).optional(),
  description: LINE.optional(),
  unit: LINE.optional(),
});

const ROWS = {
  name: NAME,
  description: LINE.optional(),
  key: z.array(NAME).default([]),
  columns: z.array(COLUMN).max(1000),
};

const NESTING = z.strictObject({ at: PATH, each: z.enum(['array', 'map']), ...ROWS });

const TABLE = z.strictObject({
  ...ROWS,
  events: z.array(LINE.min(1, 'must be the beginning of an event type')).min(1, 'must name event types'),
  each: z.literal('array').optional(),
  newest: NAME.optional(),
  nested: z.array(NESTING).max(100).optional(),
});

export const TABLES_FILE = z.strictObject({
  version: z.literal(1, { error: 'must be 1' }),
  tables: z.array(TABLE),
});

export type FileTable = z.output<typeof TABLE>;
export type FileNesting = z.output<typeof NESTING>;
export type FileColumn = z.output<typeof COLUMN>;

/** Columns that every table of PostgreSQL, Redshift or DuckDB has. */
export const SYSTEM_COLUMNS = 'cmax cmin ctid oid rowid tableoid xmax xmin'.split(' ');

/** Keys that are valid at a path. */
export function knownKeysAt(path: readonly PropertyKey[]): string[] {
  const names = path.filter((step) => typeof step === 'string');
  const last = names.at(-1);
  if (last === 'columns') return Object.keys(COLUMN.shape);
  if (last === 'nested') return Object.keys(NESTING.shape);
  if (last === 'tables') return Object.keys(TABLE.shape);
  return last === 'from' ? ['parent', 'of'] : Object.keys(TABLES_FILE.shape);
}

export interface TableProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** Contradictions between parts of one table. */
export function* checkTable(table: FileTable, path: readonly (string | number)[]): Generator<TableProblem> {
  yield* checkRows(table, path);
  const newest = table.columns.find(({ name }) => name === table.newest);
  if (table.newest !== undefined && !['timestamp', 'date'].includes(newest?.type ?? ''))
    yield {
      path: [...path, 'newest'],
      message: `${table.newest} must be a column of type timestamp or date`,
    };
  for (const [at, { from }] of table.columns.entries())
    if (typeof from === 'object')
      yield {
        path: [...path, 'columns', at, 'from'],
        message: 'must be a path: only nested rows have others',
      };
  for (const [at, nesting] of (table.nested ?? []).entries()) {
    const here = [...path, 'nested', at];
    yield* checkRows(nesting, here);
    for (const [nth, { from, type }] of nesting.columns.entries()) {
      if (typeof from !== 'object') continue;
      const wrong = originProblem(from, type, nesting.each, table);
      if (wrong !== null) yield { path: [...here, 'columns', nth], message: wrong };
    }
  }
}

function originProblem(
  from: Exclude<FileColumn['from'], string | undefined>,
  type: FileColumn['type'],
  each: 'array' | 'map',
  around: FileTable,
): string | null {
  if ('parent' in from) {
    const parent = around.columns.find(({ name }) => name === from.parent);
    if (parent === undefined) return `${around.name} has no column ${from.parent}`;
    return parent.type === type ? null : `must be of type ${parent.type}, like ${from.parent}`;
  }
  if (from.of === 'key' && each === 'array') return 'items of an array have no key; use {of: position}';
  const wanted = from.of === 'key' ? 'text' : 'integer';
  return type === wanted ? null : `must be of type ${wanted}`;
}

function* checkRows(
  { columns, key }: Pick<FileTable, 'columns' | 'key'>,
  path: readonly (string | number)[],
): Generator<TableProblem> {
  const names = new Set<string>(['extra', 'rank_']);
  for (const [at, { name, type }] of columns.entries()) {
    const here = [...path, 'columns', at];
    if (SYSTEM_COLUMNS.includes(name))
      yield {
        path: [...here, 'name'],
        message: `databases have a column ${name} of their own; use another name, with \`from: ${name}\``,
      };
    if (names.has(name)) yield { path: [...here, 'name'], message: `${name} is there already` };
    if (EVENT_IDS.has(name) && type !== 'text')
      yield { path: [...here, 'type'], message: `${name} must be a text, as every row has it` };
    names.add(name);
  }
  for (const [at, name] of key.entries())
    if (!columns.some((column) => column.name === name))
      yield { path: [...path, 'key', at], message: `${name} is no column of the table` };
}
