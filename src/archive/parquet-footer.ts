import { crc32 } from 'node:zlib';
import { type AsyncBuffer, type FileMetaData, parquetMetadata, type RowGroup } from 'hyparquet';
import { footerOf, MAGIC, schemaOf } from '../parquet/footer.ts';
import { RECORD_COLUMNS } from './record-columns.ts';

/** Rows of a row group at most. */
export const GROUP_ROWS = 32 * 1024;

/** A row group, and the CRC-32 of its bytes. */
export type SummedGroup = RowGroup & { readonly sum: number };

export interface RecordsMetadata extends Omit<FileMetaData, 'row_groups'> {
  readonly row_groups: readonly SummedGroup[];
}

/** Says that a file holds archive records, in which version, and the CRC-32 of each row group. */
const RECORDS = 'millrace.records';
const VERSION = '1';
/** The CRC-32 of the footer itself, as it is with zeros here. */
const FOOTER = 'millrace.footer';
const ZEROS = '00000000';
/** The footer's length and the file's last bytes. */
const TRAILER = 4 + MAGIC.length;

/**
 * The footer of a file of archive records. A reader of Parquet trusts what it reads, and one flipped bit can make it take all the
 * memory or time there is: so everything has a checksum that is looked at before.
 */
export function recordsFooter(groups: readonly SummedGroup[]): Buffer {
  const sums = groups.map(({ sum }) => textOf(sum));
  const footer = footerOf(RECORD_COLUMNS, groups, [
    { key: RECORDS, value: [VERSION, ...sums].join(' ') },
    { key: FOOTER, value: ZEROS },
  ]);
  footer.write(textOf(crc32(footer)), placeOfSum(footer), 'latin1');
  return footer;
}

/** What a file says of itself at its end. @throws Error when it is damaged, or no file of archive records */
export async function recordsMetadata(file: AsyncBuffer): Promise<RecordsMetadata> {
  const size = file.byteLength;
  const trailer = Buffer.from(await file.slice(Math.max(0, size - TRAILER)));
  if (size < TRAILER + MAGIC.length || !trailer.subarray(4).equals(MAGIC))
    throw new Error('not a Parquet file, or cut short');
  const length = trailer.readUInt32LE() + TRAILER;
  if (length > size) throw new Error('its footer is damaged');
  const footer = Buffer.from(await file.slice(size - length));
  const at = placeOfSum(footer);
  if (at === -1) throw new Error(FOREIGN);
  const said = footer.toString('latin1', at, at + ZEROS.length);
  footer.write(ZEROS, at, 'latin1');
  if (textOf(crc32(footer)) !== said) throw new Error('its footer is damaged');
  const metadata = parquetMetadata(Uint8Array.from(footer).buffer, { geoparquet: false });
  return { ...metadata, row_groups: summed(metadata) };
}

const FOREIGN = 'not a Parquet file of archive records of this version';

function summed({ row_groups: groups, schema, key_value_metadata: properties }: FileMetaData): SummedGroup[] {
  const [version, ...sums] = properties?.find(({ key }) => key === RECORDS)?.value?.split(' ') ?? [];
  if (version !== VERSION || columnsIn(schema) !== columnsIn(schemaOf(RECORD_COLUMNS)))
    throw new Error(FOREIGN);
  return groups.map((group, nth) => {
    // What is larger was not written here, and would take as much memory as it says.
    if (group.num_rows < 0n || group.num_rows > BigInt(GROUP_ROWS)) throw new Error(FOREIGN);
    return { ...group, sum: Number.parseInt(sums[nth] ?? '', 16) };
  });
}

function columnsIn(schema: FileMetaData['schema']): string {
  return JSON.stringify(schema.map(({ name, type, repetition_type }) => [name, type, repetition_type]));
}

/** The value stands behind its key, the byte that names the field and the one that says its length. */
function placeOfSum(footer: Buffer): number {
  const key = footer.lastIndexOf(FOOTER);
  return key === -1 ? -1 : key + FOOTER.length + 2;
}

function textOf(sum: number): string {
  return sum.toString(16).padStart(ZEROS.length, '0');
}
