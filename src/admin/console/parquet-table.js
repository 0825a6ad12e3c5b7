import { parquetMetadata, parquetReadObjects } from './hyparquet/index.js';
import { csvValue } from './csv.js';

const SCALE = 18;
const asIs = (value) => value;
/** Values as they are stored, so that none loses a digit. */
const PARSERS = {
  jsonFromBytes: (bytes) => bytes && new TextDecoder().decode(bytes),
  timestampFromMicroseconds: asIs,
  dateFromDays: asIs,
};

/** Columns of the receiver's Parquet files, by their types: as what they stand in the text, and what DuckDB makes of that. */
function columnOf({ name, type, converted_type: converted }) {
  if (converted === 'DECIMAL')
    return { name, read: 'DECIMAL(38,18)', as: asIs, write: (bytes) => decimal(bytes) };
  if (converted === 'TIMESTAMP_MICROS')
    return { name, read: 'BIGINT', as: (column) => `make_timestamp(${column})`, write: asIs };
  if (converted === 'DATE')
    return { name, read: 'INTEGER', as: (column) => `DATE '1970-01-01' + ${column}`, write: asIs };
  const read = { INT64: 'BIGINT', INT32: 'INTEGER', BOOLEAN: 'BOOLEAN', DOUBLE: 'DOUBLE' }[type] ?? 'VARCHAR';
  return { name, read, as: asIs, write: asIs };
}

/**
 * Reads a Parquet file of the receiver into what `Database.load` takes. DuckDB's own reader is not in its package, but would be
 * fetched from elsewhere.
 */
export async function readTable(file) {
  const metadata = parquetMetadata(file);
  const [, ...elements] = metadata.schema;
  const columns = elements.map(columnOf);
  for (const element of elements) {
    if (element.converted_type !== 'DECIMAL') continue;
    // As bytes: it has more digits than a number of JavaScript.
    delete element.converted_type;
    delete element.logical_type;
  }
  const parts = [];
  let from = 0;
  for (const group of metadata.row_groups) {
    const rowEnd = from + Number(group.num_rows);
    const rows = await parquetReadObjects({ file, metadata, rowStart: from, rowEnd, parsers: PARSERS });
    const lines = rows.map((row) =>
      columns
        .map(({ name, write }) =>
          csvValue(row[name] === null || row[name] === undefined ? null : write(row[name])),
        )
        .join(','),
    );
    parts.push(`${lines.join('\n')}\n`);
    from = rowEnd;
  }
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  const noted = metadata.key_value_metadata?.find(({ key }) => key === 'millrace')?.value ?? '{}';
  return { columns, bytes, rows: from, facts: JSON.parse(noted) };
}

/** Two's complement, the first byte the highest, with 18 digits behind the point. */
function decimal(bytes) {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  value = BigInt.asIntN(bytes.length * 8, value);
  const digits = (value < 0n ? -value : value).toString().padStart(SCALE + 1, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`;
}
