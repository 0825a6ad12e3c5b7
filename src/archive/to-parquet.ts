import { crc32 } from 'node:zlib';
import type { FileFormat } from '../core/archive.ts';
import { asBuffer } from '../lib/byte-writer.ts';
import { cutLines } from '../lib/lines.ts';
import { MAGIC } from '../parquet/footer.ts';
import { RowColumns } from '../parquet/row-columns.ts';
import { encodeGroupAside, placed } from '../parquet/row-group.ts';
import { GROUP_ROWS, recordsFooter, type SummedGroup } from './parquet-footer.ts';
import { addRecord, RECORD_COLUMNS } from './record-columns.ts';

/** A row group has so many bytes of values, or `GROUP_ROWS`: what a reader holds of the file. */
const GROUP_BYTES = 8 * 2 ** 20;

/**
 * The Parquet file of archive records. The same lines make the same bytes, however they are cut into chunks.
 * @param lines whole ones, each with its line feed
 * @param format looked at for each row group
 */
export async function* toParquet(
  lines: AsyncIterable<Buffer> | Iterable<Buffer>,
  format: Pick<FileFormat, 'compress'>,
): AsyncGenerator<Buffer> {
  const rows = new RowColumns(RECORD_COLUMNS);
  const groups: SummedGroup[] = [];
  let written = MAGIC.length;
  yield MAGIC;
  const group = async (): Promise<Buffer> => {
    const { bytes, meta } = await encodeGroupAside(rows.columns, rows.gathered(), format.compress);
    rows.clear();
    groups.push({ ...placed(meta, written), sum: crc32(bytes) });
    written += bytes.length;
    return asBuffer(bytes);
  };
  for await (const batch of cutLines(asyncOf(lines)))
    for (const { bytes } of batch) {
      if (bytes === null) continue;
      addRecord(rows, bytes);
      if (rows.held >= GROUP_BYTES || rows.rows >= GROUP_ROWS) yield await group();
    }
  if (rows.rows > 0) yield await group();
  yield recordsFooter(groups);
}

async function* asyncOf(chunks: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<Buffer> {
  yield* chunks;
}
