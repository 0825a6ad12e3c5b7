import { AREAS } from './areas.ts';
import { MARKERS, LAB_ACCOUNTS, ORDERS, PARSING_JOBS } from './labs.ts';
import { MEALS } from './meals.ts';
import type { TableDefinition } from './definition.ts';
import { EVENTS } from './events.ts';
import { BULK_OPS, HISTORICAL_PULLS } from './operations.ts';
import { INSURANCE } from './users.ts';

/** Documents that become rows; each table's nested tables come with it. */
const DOCUMENTS = [
  EVENTS,
  MEALS,
  MARKERS,
  LAB_ACCOUNTS,
  AREAS,
  INSURANCE,
  ORDERS,
  PARSING_JOBS,
  BULK_OPS,
  HISTORICAL_PULLS,
];

/** A table as others look it up. */
export interface TableEntry {
  readonly definition: TableDefinition;
  /** The table whose documents it is shaped from: itself, or the one it is nested in. */
  readonly document: TableDefinition;
}

const entries = DOCUMENTS.flatMap((document: TableDefinition): TableEntry[] => [
  { definition: document, document },
  ...(document.nested ?? []).map(({ table }) => ({ definition: table, document })),
]);

/** Every table by its name, nested ones after the one they are nested in. */
export const TABLES: ReadonlyMap<string, TableEntry> = new Map(
  entries.map((entry) => [entry.definition.name, entry]),
);

/** A table and those nested in it. */
export function withNested(name: string): string[] {
  return [name, ...(TABLES.get(name)?.definition.nested ?? []).map(({ table }) => table.name)];
}
