import type { KeyValue, RowGroup } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import type { Column } from '../warehouse/definition.ts';
import { schemaOf } from './parquet-schema.ts';

/** Stands at both ends of a file. */
export const MAGIC = Buffer.from('PAR1');

/** What stands behind the row groups of a file, up to its end. */
export function footerOf(
  columns: readonly Column[],
  groups: readonly RowGroup[],
  properties: readonly KeyValue[] = [],
): Buffer {
  const footer = new ByteWriter();
  writeMetadata(footer, {
    version: 2,
    created_by: 'millrace',
    schema: schemaOf(columns),
    num_rows: groups.reduce((sum, { num_rows: rows }) => sum + rows, 0n),
    row_groups: [...groups],
    ...(properties.length === 0 ? {} : { key_value_metadata: [...properties] }),
    metadata_length: 0,
  });
  return Buffer.concat([footer.getBytes(), MAGIC]);
}
