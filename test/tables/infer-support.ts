import type { TableDefinition } from '../../src/tables/definition.ts';
import { Inference, type Inferred } from '../../src/tables/learned/infer/infer.ts';
import { writeTables, type LearnedTable } from '../../src/tables/learned/infer/write.ts';
import { parseTables } from '../../src/tables/learned/read-tables.ts';
import { linesOf } from '../../src/tables/shape/row-lines.ts';
import { Shaper } from '../../src/tables/shape/shape.ts';
import { jsonLines } from '../support/json-lines.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export function inferred(documents: readonly Json[], type = 'raw.thing.created', limit = 1000): Inferred {
  const inference = new Inference({ limit, taken: new Set() });
  for (const document of documents) inference.add(type, () => Buffer.from(JSON.stringify(document)));
  return inference.finish();
}

/** The one table that documents give. */
export function tableOf(documents: readonly Json[]): LearnedTable {
  const { tables } = inferred(documents);
  if (tables.length !== 1) throw new Error(`${tables.length} tables`);
  return tables[0]!;
}

/** Names of columns and their types, as `name type`. */
export function columnsOf({ columns }: Pick<LearnedTable, 'columns'>): string[] {
  return columns.map(({ name, type }) => `${name} ${type}`);
}

export function fileOf(documents: readonly Json[]): string {
  return writeTables(inferred(documents).tables);
}

/** The definition after it has been a file. */
export function definitionOf(documents: readonly Json[]): TableDefinition {
  return parseTables(fileOf(documents), 'tables.yaml')[0]!;
}

export type Row = Readonly<Record<string, unknown>>;

/** Rows that documents become, by table. */
export function shaped(
  definition: TableDefinition,
  documents: readonly Json[],
): { rows: Record<string, Row[]>; rejects: string[]; unknown: string[] } {
  const targets = linesOf([definition, ...(definition.nested ?? []).map(({ table }) => table)]);
  const rejects: string[] = [];
  const unknown: string[] = [];
  const shaper = new Shaper(
    { definition, document: definition },
    {
      tables: [...targets.keys()],
      targets,
      onReject: ({ table, code, reason }) => rejects.push(`${table}: ${code}: ${reason}`),
      onUnknown: (table, path) => unknown.push(`${table}: ${path}`),
    },
  );
  for (const document of documents) shaper.shape(Buffer.from(JSON.stringify(document)));
  const rows = Object.fromEntries([...targets].map(([table, made]) => [table, jsonLines<Row>(made.view())]));
  return { rows, rejects, unknown };
}
