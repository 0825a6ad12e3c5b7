import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { RowGroup, SchemaElement } from 'hyparquet';
import { joined } from '../lib/byte-writer.ts';
import type { Column } from '../warehouse/definition.ts';
import { GZIP_LEVEL, type Compression } from '../core/compression.ts';
import { type Compress, encodeChunk } from './column-chunk.ts';
import type { GatheredValues } from './column-values.ts';
import { schemaOf } from './parquet-schema.ts';

/** A row group ready to be written: its bytes, and what the footer says of it, with offsets from its own beginning. */
export interface EncodedGroup {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly meta: RowGroup;
}

const CODECS = { gzip: 'GZIP', zstd: 'ZSTD', none: 'UNCOMPRESSED' } as const satisfies Record<
  Compression,
  string
>;

/** A compressed page comes in pieces of this size. */
const pieceOf = ({ length }: Uint8Array): number => Math.max(256, Math.ceil(length / 2));

const COMPRESS: Readonly<Record<Compression, Compress>> = {
  gzip: (bytes) => gzipSync(bytes, { level: GZIP_LEVEL, chunkSize: pieceOf(bytes) }),
  // Told the size, it takes no more memory than that needs: megabytes for each of many small pages otherwise.
  zstd: (bytes) => zstdCompressSync(bytes, { pledgedSrcSize: bytes.length, chunkSize: pieceOf(bytes) }),
  none: (bytes) => bytes,
};

/** Encodes and compresses columns, in the calling thread. */
export function encodeGroup(
  columns: readonly Column[],
  gathered: readonly GatheredValues[],
  compression: Compression,
): EncodedGroup {
  const [, ...elements] = schemaOf(columns);
  const chunks = columns.map(({ type }, at) =>
    encodeChunk(
      elements[at] as SchemaElement,
      type,
      gathered[at] as GatheredValues,
      CODECS[compression],
      COMPRESS[compression],
    ),
  );
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

/** What the footer says of a group that stands at `start`. */
export function placed({ meta }: EncodedGroup, start: number): RowGroup {
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
