import type { SchemaElement } from 'hyparquet-writer';
import type { Column, ColumnType } from '../warehouse/definition.ts';
import { DECIMAL_SCALE } from '../warehouse/shape/fit.ts';
import { DECIMAL_BYTES, DECIMAL_PRECISION } from './decimal.ts';

/**
 * What each column type is in Parquet: the same types as the DDL of `millrace schema`. Times are microseconds in UTC;
 * decimals are exact, 38 digits with 18 behind the point.
 */
const ELEMENTS: Readonly<Record<ColumnType, Omit<SchemaElement, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  integer: { type: 'INT64' },
  decimal: {
    type: 'FIXED_LEN_BYTE_ARRAY',
    type_length: DECIMAL_BYTES,
    converted_type: 'DECIMAL',
    precision: DECIMAL_PRECISION,
    scale: DECIMAL_SCALE,
    logical_type: { type: 'DECIMAL', precision: DECIMAL_PRECISION, scale: DECIMAL_SCALE },
  },
  boolean: { type: 'BOOLEAN' },
  date: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
  timestamp: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  json: { type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } },
};

/** False for columns whose least and greatest value are not looked for (decimals), or would say nothing. */
export function hasStatistics({ type, bounds }: Column): boolean {
  return type !== 'decimal' && type !== 'json' && bounds !== false;
}

/** A file's schema: a flat row of the columns. */
export function schemaOf(columns: readonly Column[]): SchemaElement[] {
  const elements = columns.map(({ name, type, required }): SchemaElement => ({
    name,
    repetition_type: required === true ? 'REQUIRED' : 'OPTIONAL',
    ...ELEMENTS[type],
  }));
  return [{ name: 'row', num_children: elements.length }, ...elements];
}
