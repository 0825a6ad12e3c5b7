import { promisify } from 'node:util';
import { gzip, zstdCompress } from 'node:zlib';
import type { RowGroup, SchemaElement } from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import type { TableDefinition } from '../../warehouse/definition.ts';
import type { HashedFile } from '../../lib/new-file.ts';
import { type Compress, encodeChunk } from './column-chunk.ts';
import { schemaOf } from './parquet-schema.ts';
import { RowColumns } from './row-columns.ts';
import { GZIP_LEVEL, type ExportCompression, type RowFile } from '../row-file.ts';

/** A row group holds so many bytes of values as JSON, or so many rows: what readers skip and load in one piece. */
const GROUP_BYTES = 16 * 1024 * 1024;
const GROUP_ROWS = 128 * 1024;
/** Stands at both ends of a file. */
const MAGIC = Buffer.from('PAR1');

const CODECS = { gzip: 'GZIP', zstd: 'ZSTD', none: 'UNCOMPRESSED' } as const satisfies Record<
  ExportCompression,
  string
>;

const gzipped = promisify(gzip);
const zstdCompressed = promisify(zstdCompress);

/** Pieces in which a compressed page comes: each is a turn of the main thread. */
const pieceOf = ({ length }: Uint8Array): number => Math.max(256, Math.ceil(length / 2));

const COMPRESS: Readonly<Record<ExportCompression, Compress>> = {
  gzip: (bytes) => gzipped(bytes, { level: GZIP_LEVEL, chunkSize: pieceOf(bytes) }),
  // Told the size, it takes no more memory than that needs: megabytes for each of many small pages otherwise.
  zstd: (bytes) => zstdCompressed(bytes, { pledgedSrcSize: bytes.length, chunkSize: pieceOf(bytes) }),
  none: (bytes) => Promise.resolve(bytes),
};

/**
 * Rows as a Parquet file. One row group is gathered while the one before is compressed and written; memory is that of
 * two, whatever the size of the file.
 */
export class ParquetFile implements RowFile {
  /** Where its rows go; `flush` is to be called when it is full. */
  readonly columns: RowColumns;
  /** Bytes of the row group that is being written. */
  writing = 0;
  readonly #create: () => Promise<HashedFile>;
  readonly #schema: SchemaElement[];
  readonly #compression: ExportCompression;
  readonly #groups: RowGroup[] = [];
  #out: HashedFile | null = null;
  /** Rows of the row groups, the one that is being written included. */
  #taken = 0;
  #written = Promise.resolve();

  /** @param create makes the empty file, once there are rows */
  constructor(
    create: () => Promise<HashedFile>,
    definition: TableDefinition,
    compression: ExportCompression,
  ) {
    this.#create = create;
    this.columns = new RowColumns(definition);
    this.#schema = schemaOf(this.columns.columns);
    this.#compression = compression;
  }

  get held(): number {
    return this.columns.held;
  }

  get rows(): number {
    return this.#taken + this.columns.rows;
  }

  /** A row group is complete. */
  get isFull(): boolean {
    return this.columns.held >= GROUP_BYTES || this.columns.rows >= GROUP_ROWS;
  }

  async relieve(): Promise<void> {
    if (this.columns.rows === 0) return;
    await this.#written;
    this.writing = this.columns.held;
    this.#written = this.#writeGroup().finally(() => (this.writing = 0));
    // Whoever comes next waits for it and is told.
    this.#written.catch(() => undefined);
  }

  async settled(): Promise<void> {
    await this.#written;
  }

  async finish(): Promise<{ bytes: number; sha256: string } | null> {
    await this.relieve();
    await this.#written;
    const out = this.#out;
    if (out === null) return null;
    const footer = new ByteWriter();
    writeMetadata(footer, {
      version: 2,
      created_by: 'millrace',
      schema: this.#schema,
      num_rows: BigInt(this.rows),
      row_groups: this.#groups,
      metadata_length: 0,
    });
    await out.write(Buffer.concat([footer.getBytes(), MAGIC]));
    await out.finish();
    return out.facts();
  }

  async abandon(): Promise<void> {
    await this.#written.catch(() => undefined);
    await this.#out?.abandon();
  }

  /** Takes the rows at once; the rest is done while others gather. */
  async #writeGroup(): Promise<void> {
    const { columns, rows } = this.columns;
    this.#taken += rows;
    const compress = COMPRESS[this.#compression];
    const codec = CODECS[this.#compression];
    const gathered = this.columns.take();
    const chunks = await Promise.all(
      gathered.map((values, at) => {
        const [element, column] = [this.#schema[at + 1], columns[at]];
        if (element === undefined || column === undefined) throw new Error('more chunks than columns');
        return encodeChunk(element, column.type, values, codec, compress);
      }),
    );
    const out = this.#out ?? (await this.#begin());
    const start = out.bytes;
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
    await out.write(Buffer.concat(chunks.flatMap(({ pieces }) => pieces)));
    this.columns.reuse(gathered);
  }

  async #begin(): Promise<HashedFile> {
    const out = await this.#create();
    this.#out = out;
    await out.write(MAGIC);
    return out;
  }
}
