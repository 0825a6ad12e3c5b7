import { promisify } from 'node:util';
import { gzip, zstdCompress } from 'node:zlib';
import type { RowGroup, SchemaElement } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import type { TableDefinition } from '../warehouse/definition.ts';
import type { HashedFile } from '../lib/new-file.ts';
import { type Compress, encodeChunk } from './column-chunk.ts';
import { schemaOf } from './parquet-schema.ts';
import { RowColumns } from './row-columns.ts';
import { GZIP_LEVEL, type ExportCompression, type RowFile } from './row-file.ts';

/** A row group holds so many bytes of values, or so many values: what readers skip and load in one piece. */
const GROUP_BYTES = 8 * 1024 * 1024;
const GROUP_VALUES = 1_000_000;
/** Stands at both ends of a file. */
const MAGIC = Buffer.from('PAR1');

const CODECS = { gzip: 'GZIP', zstd: 'ZSTD', none: 'UNCOMPRESSED' } as const satisfies Record<
  ExportCompression,
  string
>;

const COMPRESS: Readonly<Record<ExportCompression, Compress>> = {
  gzip: (bytes) => promisify(gzip)(bytes, { level: GZIP_LEVEL }),
  zstd: (bytes) => promisify(zstdCompress)(bytes),
  none: (bytes) => Promise.resolve(bytes),
};

/**
 * Rows as a Parquet file. One row group is gathered while the one before is compressed and written; memory is that of
 * two, whatever the size of the file.
 */
export class ParquetFile implements RowFile {
  rows = 0;
  /** Bytes of the row group that is being written. */
  writing = 0;
  readonly #out: HashedFile;
  readonly #columns: RowColumns;
  readonly #schema: SchemaElement[];
  readonly #compression: ExportCompression;
  readonly #groups: RowGroup[] = [];
  #written: Promise<void>;

  /** @param out empty */
  constructor(out: HashedFile, definition: TableDefinition, compression: ExportCompression) {
    this.#out = out;
    this.#columns = new RowColumns(definition);
    this.#schema = schemaOf(this.#columns.columns);
    this.#compression = compression;
    this.#written = out.write(MAGIC);
  }

  get held(): number {
    return this.#columns.held;
  }

  async write(lines: Buffer, rows: number): Promise<void> {
    this.#columns.add(lines);
    this.rows += rows;
    const { held, rows: gathered, columns } = this.#columns;
    if (held >= GROUP_BYTES || gathered * columns.length >= GROUP_VALUES) await this.relieve();
  }

  async relieve(): Promise<void> {
    if (this.#columns.rows === 0) return;
    await this.#written;
    this.writing = this.#columns.held;
    this.#written = this.#writeGroup().finally(() => (this.writing = 0));
    // Whoever comes next waits for it and is told.
    this.#written.catch(() => undefined);
  }

  async settled(): Promise<void> {
    await this.#written;
  }

  async finish(): Promise<{ bytes: number; sha256: string }> {
    await this.relieve();
    await this.#written;
    const footer = new ByteWriter();
    writeMetadata(footer, {
      version: 2,
      created_by: 'millrace',
      schema: this.#schema,
      num_rows: BigInt(this.rows),
      row_groups: this.#groups,
      metadata_length: 0,
    });
    await this.#out.write(Buffer.concat([footer.getBytes(), MAGIC]));
    await this.#out.finish();
    return this.#out.facts();
  }

  async abandon(): Promise<void> {
    await this.#written.catch(() => undefined);
    await this.#out.abandon();
  }

  /** Takes the rows at once; the rest is done while others gather. */
  async #writeGroup(): Promise<void> {
    const { columns, rows } = this.#columns;
    const compress = COMPRESS[this.#compression];
    const codec = CODECS[this.#compression];
    const chunks = await Promise.all(
      this.#columns.take().map((values, at) => {
        const [element, column] = [this.#schema[at + 1], columns[at]];
        if (element === undefined || column === undefined) throw new Error('more chunks than columns');
        return encodeChunk(element, column.type, values, codec, compress);
      }),
    );
    const start = this.#out.bytes;
    let offset = BigInt(start);
    const group: RowGroup = { columns: [], total_byte_size: 0n, num_rows: BigInt(rows) };
    for (const { meta } of chunks) {
      const { data_page_offset: data, dictionary_page_offset: dictionary } = meta;
      const at = {
        data_page_offset: offset + data,
        ...(dictionary === undefined ? {} : { dictionary_page_offset: offset }),
      };
      group.columns.push({ file_offset: offset, meta_data: { ...meta, ...at } });
      group.total_byte_size += meta.total_uncompressed_size;
      offset += meta.total_compressed_size;
    }
    group.total_compressed_size = offset - BigInt(start);
    this.#groups.push(group);
    await this.#out.write(Buffer.concat(chunks.flatMap(({ pieces }) => pieces)));
  }
}
