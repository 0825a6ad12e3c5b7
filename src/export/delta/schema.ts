import { type Column, columnsOf, type ColumnType, type TableDefinition } from '../../tables/definition.ts';
import { DECIMAL_SCALE } from '../../tables/shape/column-types.ts';
import { DECIMAL_PRECISION } from '../parquet/decimal.ts';

/** Column types in Delta. Times are instants (`timestamp`); JSON is a string, which every reader can read. */
const TYPES: Readonly<Record<ColumnType, string>> = {
  text: 'string',
  integer: 'long',
  decimal: `decimal(${DECIMAL_PRECISION},${DECIMAL_SCALE})`,
  boolean: 'boolean',
  date: 'date',
  timestamp: 'timestamp',
  json: 'string',
};

/** The column with the day of a folder; the files do not have it. */
export const DAY = 'dt';

interface Field {
  readonly name: string;
  readonly type: unknown;
  readonly nullable: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
}

interface Struct {
  readonly type: 'struct';
  readonly fields: readonly Field[];
}

export function schemaOf(definition: TableDefinition, partition: 'dt' | 'none'): Struct {
  const fields = columnsOf(definition).map(fieldOf);
  const day = { name: DAY, type: 'date', nullable: true, metadata: { comment: 'day of _received_at, UTC' } };
  return { type: 'struct', fields: partition === 'dt' ? [...fields, day] : fields };
}

function fieldOf({ name, type, required, description }: Column): Field {
  return { name, type: TYPES[type], nullable: required !== true, metadata: { comment: description } };
}

/** A column has another name or type in the table. */
export class SchemaConflict extends Error {}

/**
 * The schema of an existing table with the new columns; old columns stay, and are null in new rows.
 * @returns null when nothing changes @throws SchemaConflict
 */
export function evolved(present: string, wanted: Struct): string | null {
  const { fields } = JSON.parse(present) as Struct;
  const named = new Map(fields.map((field) => [field.name.toLowerCase(), field]));
  const kept = fields.map((field) => {
    const now = wanted.fields.find(({ name }) => name.toLowerCase() === field.name.toLowerCase());
    const mustRelax = !field.nullable && now?.nullable !== false;
    return mustRelax ? { ...field, nullable: true } : field;
  });
  const added = wanted.fields.flatMap((field) => {
    const known = named.get(field.name.toLowerCase());
    if (known === undefined) return [{ ...field, nullable: true }];
    if (known.name !== field.name || JSON.stringify(known.type) !== JSON.stringify(field.type))
      throw new SchemaConflict(
        `column ${known.name} is ${JSON.stringify(known.type)}, and ${field.name} ${JSON.stringify(field.type)} now`,
      );
    return [];
  });
  const changed = added.length > 0 || kept.some((field, at) => field !== fields[at]);
  return changed ? JSON.stringify({ type: 'struct', fields: [...kept, ...added] }) : null;
}
