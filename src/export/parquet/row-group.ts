import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { RowGroup, SchemaElement } from 'hyparquet';
import { joined } from '../../lib/byte-writer.ts';
import type { Column } from '../../tables/definition.ts';
import { GZIP_LEVEL, type Compression } from '../../core/compression.ts';
import { encodeChunk, type Codec, type EncodedChunk } from './column-chunk.ts';
import type { GatheredValues } from './column-values.ts';
import { schemaOf } from './footer.ts';

/** A row group ready to be written, with its entry in the footer; offsets are from its beginning. */
export interface EncodedGroup {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly meta: RowGroup;
}

/** zlib allocates a compressed page in pieces of this size. */
const pieceOf = ({ length }: Uint8Array): number => Math.max(256, Math.ceil(length / 8));

const CODECS: Readonly<Record<Compression, Codec>> = {
  gzip: {
    name: 'GZIP',
    compress: (page) => gzipSync(page, { level: GZIP_LEVEL, chunkSize: pieceOf(page) }),
  },
  zstd: {
    name: 'ZSTD',
    // Without the size it would allocate megabytes for each small page.
    compress: (page) => zstdCompressSync(page, { pledgedSrcSize: page.length, chunkSize: pieceOf(page) }),
  },
  none: { name: 'UNCOMPRESSED', compress: (page) => page },
};

/** Encodes and compresses columns, in the calling thread. */
export function encodeGroup(
  columns: readonly Column[],
  gathered: readonly GatheredValues[],
  compression: Compression,
): EncodedGroup {
  const [, ...elements] = schemaOf(columns);
  const chunks: EncodedChunk[] = [];
  for (const [at, column] of columns.entries()) {
    const values = gathered[at] as GatheredValues;
    const twin = chunks[gathered.indexOf(values)];
    chunks.push(
      encodeChunk(elements[at] as SchemaElement, column.type, values, CODECS[compression], twin?.packed),
    );
  }
  const bytes = joined(chunks.flatMap(({ pieces }) => pieces));
  let offset = 0n;
  let total = 0n;
  const group: RowGroup['columns'] = [];
  for (const { meta } of chunks) {
    group.push(shifted({ file_offset: 0n, meta_data: meta }, offset));
    offset += meta.total_compressed_size;
    total += meta.total_uncompressed_size;
  }
  return {
    bytes,
    meta: {
      columns: group,
      total_byte_size: total,
      num_rows: BigInt(gathered[0]?.present.length ?? 0),
      total_compressed_size: offset,
    },
  };
}

/** The footer's entry of a group that begins at `start`. */
export function placed(meta: RowGroup, start: number): RowGroup {
  return { ...meta, columns: meta.columns.map((column) => shifted(column, BigInt(start))) };
}

function shifted(column: RowGroup['columns'][number], by: bigint): RowGroup['columns'][number] {
  const { file_offset, meta_data: meta } = column;
  if (meta === undefined) return column;
  const { data_page_offset: data, dictionary_page_offset: dictionary } = meta;
  return {
    file_offset: file_offset + by,
    meta_data: {
      ...meta,
      data_page_offset: data + by,
      ...(dictionary === undefined ? {} : { dictionary_page_offset: dictionary + by }),
    },
  };
}
