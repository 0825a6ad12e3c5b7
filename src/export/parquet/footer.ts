import type { RowGroup } from 'hyparquet';
import { ByteWriter, type SchemaElement } from 'hyparquet-writer';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import type { Column, ColumnType } from '../../tables/definition.ts';
import { DECIMAL_SCALE } from '../../tables/shape/column-types.ts';
import { DECIMAL_BYTES, DECIMAL_PRECISION } from './decimal.ts';

/** Both ends of a file. */
export const MAGIC = Buffer.from('PAR1');

/** The bytes after the row groups of a file. */
export function footerOf(columns: readonly Column[], groups: readonly RowGroup[]): Buffer {
  const footer = new ByteWriter();
  writeMetadata(footer, {
    version: 2,
    created_by: 'millrace',
    schema: schemaOf(columns),
    num_rows: groups.reduce((sum, { num_rows: rows }) => sum + rows, 0n),
    row_groups: [...groups],
    metadata_length: 0,
  });
  return Buffer.concat([footer.getBytes(), MAGIC]);
}

/** Column types in Parquet, as in the DDL of `millrace schema`. Times are microseconds in UTC; decimals have 38 digits, 18 after the point. */
export const ELEMENTS: Readonly<Record<ColumnType, Omit<SchemaElement, 'name'>>> = {
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

/** A file's schema: the columns, without nesting. */
export function schemaOf(columns: readonly Column[]): SchemaElement[] {
  const elements = columns.map(({ name, type, required }): SchemaElement => ({
    name,
    repetition_type: required === true ? 'REQUIRED' : 'OPTIONAL',
    ...ELEMENTS[type],
  }));
  return [{ name: 'row', num_children: elements.length }, ...elements];
}
