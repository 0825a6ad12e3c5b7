import type { ColumnChunk, Encoding, PageHeader, SchemaElement, Statistics } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import { writeRleBitPackedHybrid } from 'hyparquet-writer/src/encoding.js';
import { asBuffer } from '../../lib/byte-writer.ts';
import type { ColumnType } from '../../tables/definition.ts';
import { boundsOf } from './bounds.ts';
import type { GatheredValues } from './column-values.ts';

const TINY = 128;

/** A column chunk ready to be written, with its entry in the footer. */
export interface EncodedChunk {
  readonly pieces: readonly Uint8Array[];
  /** The compressed pages among them, without headers and levels. */
  readonly packed: readonly Uint8Array[];
  /** Offsets are from the beginning of the chunk. */
  readonly meta: NonNullable<ColumnChunk['meta_data']>;
}

interface Page {
  readonly header: Pick<PageHeader, 'type' | 'dictionary_page_header' | 'data_page_header_v2'>;
  readonly levels: Uint8Array;
  readonly body: Uint8Array;
}

/** How pages are compressed. */
export interface Codec {
  readonly name: 'GZIP' | 'ZSTD' | 'UNCOMPRESSED';
  readonly compress: (page: Uint8Array) => Uint8Array;
}

/**
 * Encodes a column's values to pages. Only `pieces` has views of the values' buffers.
 * @param known compressed pages of a column with the same values
 */
export function encodeChunk(
  { name, type: physical = 'BYTE_ARRAY', repetition_type: repetition }: SchemaElement,
  type: ColumnType,
  values: GatheredValues,
  codec: Codec,
  known?: readonly Uint8Array[],
): EncodedChunk {
  const pages = [...pagesOf(type, values, repetition === 'REQUIRED')];
  const statistics = statisticsOf(type, values);
  // One value for all rows, say, is too small to be compressed.
  const isTiny = pages.reduce((sum, { body }) => sum + body.length, 0) <= TINY;
  const pieces: Uint8Array[] = [];
  const packed: Uint8Array[] = [];
  let uncompressed = 0;
  let offset = 0;
  let data = 0;
  for (const { header, levels, body } of pages) {
    const page = known?.[packed.length] ?? (isTiny || body.length === 0 ? body : codec.compress(body));
    packed.push(page);
    const head = new ByteWriter(64);
    writePageHeader(head, {
      ...header,
      uncompressed_page_size: levels.length + body.length,
      compressed_page_size: levels.length + page.length,
    });
    if (header.type === 'DICTIONARY_PAGE') data = head.index + page.length;
    pieces.push(head.getBytes(), levels, page);
    uncompressed += head.index + levels.length + body.length;
    offset += head.index + levels.length + page.length;
  }
  const dictionary = values.indexes !== null;
  return {
    pieces,
    packed,
    meta: {
      type: physical,
      encodings: [...new Set(pages.map(({ header }) => encodingOf(header)))],
      path_in_schema: [name],
      codec: isTiny ? 'UNCOMPRESSED' : codec.name,
      num_values: BigInt(values.present.length),
      total_compressed_size: BigInt(offset),
      total_uncompressed_size: BigInt(uncompressed),
      data_page_offset: BigInt(data),
      ...(dictionary ? { dictionary_page_offset: 0n } : {}),
      ...(statistics === null ? {} : { statistics }),
    },
  };
}

function encodingOf({ dictionary_page_header, data_page_header_v2 }: Page['header']): Encoding {
  return (dictionary_page_header ?? data_page_header_v2)?.encoding ?? 'PLAIN';
}

function* pagesOf(type: ColumnType, values: GatheredValues, required: boolean): Generator<Page> {
  const { indexes, entries, present, count, cuts, plain } = values;
  if (indexes !== null) {
    const header = { num_values: entries, encoding: 'PLAIN' } as const;
    yield { header: { type: 'DICTIONARY_PAGE', dictionary_page_header: header }, levels: EMPTY, body: plain };
    const body = new ByteWriter(count);
    const width = Math.ceil(Math.log2(entries));
    body.appendUint8(width);
    writeRleBitPackedHybrid(body, indexes, width);
    yield dataPage('RLE_DICTIONARY', present, count, required, body.getBytes());
    return;
  }
  let from = { rows: 0, values: 0, bytes: 0 };
  for (const to of cuts) {
    const rows = present.subarray(from.rows, to.rows);
    const bytes = plain.subarray(from.bytes, to.bytes);
    const encoding = type === 'boolean' ? 'RLE' : 'PLAIN';
    const body = type === 'boolean' ? booleans(bytes) : bytes;
    yield dataPage(encoding, rows, to.values - from.values, required, body);
    from = to;
  }
}

const EMPTY = new Uint8Array(0);

function dataPage(
  encoding: Encoding,
  present: Uint8Array,
  count: number,
  required: boolean,
  body: Uint8Array,
): Page {
  const levels = new ByteWriter(64);
  if (!required) writeLevels(levels, present, count);
  const header = {
    num_values: present.length,
    num_nulls: present.length - count,
    num_rows: present.length,
    encoding,
    definition_levels_byte_length: levels.index,
    repetition_levels_byte_length: 0,
    // An empty body stays empty.
    is_compressed: body.length > 0,
  };
  return { header: { type: 'DATA_PAGE_V2', data_page_header_v2: header }, levels: levels.getBytes(), body };
}

/** Writes which rows have a value. Mostly all or none have: then it is one run. */
function writeLevels(out: ByteWriter, present: Uint8Array, count: number): void {
  if (count > 0 && count < present.length) {
    writeRleBitPackedHybrid(out, present, 1);
    return;
  }
  out.appendVarInt(present.length << 1);
  out.appendUint8(count === 0 ? 0 : 1);
}

/** Runs of bits, after their length. */
function booleans(values: Uint8Array): Uint8Array {
  const runs = new ByteWriter(64);
  runs.appendUint32(0);
  writeRleBitPackedHybrid(runs, values, 1);
  runs.view.setUint32(0, runs.index - 4, true);
  return runs.getBytes();
}

/** Null for decimals and JSON, whose bounds are not needed. */
function statisticsOf(
  type: ColumnType,
  { plain, entries, count, indexes, present }: GatheredValues,
): Statistics | null {
  if (type === 'decimal' || type === 'json') return null;
  const bounds = boundsOf(type, asBuffer(plain), indexes === null ? count : entries);
  return { null_count: BigInt(present.length - count), ...bounds };
}
