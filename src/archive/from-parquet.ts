import { setImmediate as turn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { type AsyncBuffer, parquetScan } from 'hyparquet';
import type { Compression } from '../core/compression.ts';
import { ByteWriter } from '../lib/byte-writer.ts';
import { DECOMPRESS } from '../parquet/stored-pages.ts';
import { recordsMetadata, type RecordsMetadata, type SummedGroup } from './parquet-footer.ts';
import { appendRecord, RECORD_COLUMNS } from './record-columns.ts';

/** Lines are handed on in pieces of this size. */
const CHUNK = 256 * 1024;

/** The lines that a Parquet file of archive records was made of, byte for byte, a row group in memory at a time. */
export async function* fromParquet(
  file: AsyncBuffer,
  onPages?: (compress: Compression) => void,
): AsyncGenerator<Buffer> {
  const metadata = await recordsMetadata(file);
  onPages?.(compressionOf(metadata));
  // Values as they are stored: nothing becomes a text or a time on the way that is not one.
  const schema = metadata.schema.map(({ name, type, repetition_type, num_children }) => ({
    name,
    ...(type === undefined ? {} : { type }),
    ...(repetition_type === undefined ? {} : { repetition_type }),
    ...(num_children === undefined ? {} : { num_children }),
  }));
  const all = { ...metadata, schema, row_groups: [...metadata.row_groups] };
  const damaged: number[] = [];
  let rowStart = 0;
  for (const [nth, group] of metadata.row_groups.entries()) {
    const rowEnd = rowStart + Number(group.num_rows);
    const held = await heldGroup(file, group);
    if (held === null) damaged.push(nth);
    else {
      const options = { file: held, metadata: all, compressors: DECOMPRESS, utf8: false };
      const scan = await parquetScan({ ...options, geoparquet: false, useOffsetIndex: false });
      const columns: unknown[][] = [];
      for (const { name: column } of RECORD_COLUMNS) {
        columns.push(Array.from(await scan.readColumn({ column, rowStart, rowEnd })));
        // Who receives events waits for nobody who reads old ones.
        await turn();
      }
      yield* linesOf(columns, rowEnd - rowStart);
    }
    rowStart = rowEnd;
  }
  const [first] = damaged;
  if (first !== undefined)
    throw new Error(
      `${damaged.length} of ${metadata.row_groups.length} row groups are damaged, from number ${first + 1} on`,
    );
}

/** The file as it is in one row group, which is in memory; null when its bytes are not those that were written. */
async function heldGroup(file: AsyncBuffer, { columns, sum }: SummedGroup): Promise<AsyncBuffer | null> {
  const spans = columns.flatMap(({ meta_data: meta }) => {
    if (meta === undefined) return [];
    const from = Number(meta.dictionary_page_offset ?? meta.data_page_offset);
    return [{ from, to: from + Number(meta.total_compressed_size) }];
  });
  const start = Math.min(...spans.map(({ from }) => from));
  const end = Math.max(...spans.map(({ to }) => to));
  const bytes = await file.slice(start, end);
  if (crc32(Buffer.from(bytes)) !== sum) return null;
  return {
    byteLength: file.byteLength,
    slice: (from, to = file.byteLength) => bytes.slice(from - start, to - start),
  };
}

async function* linesOf(columns: readonly (readonly unknown[])[], rows: number): AsyncGenerator<Buffer> {
  let out = new ByteWriter(CHUNK);
  for (let row = 0; row < rows; row += 1) {
    appendRecord(
      out,
      columns.map((values) => values[row]),
    );
    if (out.length < CHUNK && row + 1 < rows) continue;
    yield out.view();
    await turn();
    out = new ByteWriter(CHUNK);
  }
}

/** How the pages of a file are compressed that are. */
function compressionOf({ row_groups: groups }: RecordsMetadata): Compression {
  const codecs = new Set(groups.flatMap(({ columns }) => columns.map(({ meta_data: meta }) => meta?.codec)));
  if (codecs.has('ZSTD')) return 'zstd';
  return codecs.has('GZIP') ? 'gzip' : 'none';
}
