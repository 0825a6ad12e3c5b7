import { gzipSync, zstdCompressSync } from 'node:zlib';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { TableDefinition } from '../warehouse/definition.ts';
import type { HashedFile } from '../lib/new-file.ts';
import { GZIP_LEVEL, type ExportCompression, type RowFile } from './row-file.ts';
import { RowColumns } from './row-columns.ts';
import { hasStatistics, schemaOf } from './values.ts';

/** A row group holds rows of so many bytes as NDJSON, or so many values: what readers skip and load in one piece. */
const GROUP_BYTES = 8 * 1024 * 1024;
const GROUP_VALUES = 1_000_000;

const CODECS = { gzip: 'GZIP', zstd: 'ZSTD', none: 'UNCOMPRESSED' } as const satisfies Record<
  ExportCompression,
  string
>;

const compressors = {
  GZIP: (bytes: Uint8Array) => gzipSync(bytes, { level: GZIP_LEVEL }),
  ZSTD: (bytes: Uint8Array) => zstdCompressSync(bytes),
};

/** The writer's buffer; what is in it goes to the file after each row group. */
class GroupWriter extends ByteWriter {
  readonly #out: HashedFile;

  constructor(out: HashedFile) {
    super();
    this.#out = out;
  }

  async flush(): Promise<void> {
    const bytes = this.getBytes();
    await this.#out.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    // `offset` continues counting the bytes of the file, `index` those of the buffer.
    this.index = 0;
  }
}

/** Rows as a Parquet file. Memory is that of one row group, whatever the size of the file. */
export class ParquetFile implements RowFile {
  rows = 0;
  held = 0;
  readonly #out: HashedFile;
  readonly #columns: RowColumns;
  readonly #bytes: GroupWriter;
  readonly #writer: ParquetWriter;

  /** @param out empty */
  constructor(out: HashedFile, definition: TableDefinition, compression: ExportCompression) {
    this.#out = out;
    this.#columns = new RowColumns(definition);
    this.#bytes = new GroupWriter(out);
    this.#writer = new ParquetWriter({
      writer: this.#bytes,
      schema: schemaOf(this.#columns.columns, 'values'),
      codec: CODECS[compression],
      compressors,
      createdBy: 'millrace',
    });
  }

  async write(lines: Buffer, rows: number): Promise<void> {
    this.#columns.add(lines);
    this.held += lines.length;
    this.rows += rows;
    if (this.held >= GROUP_BYTES || this.#columns.rows * this.#columns.columns.length >= GROUP_VALUES)
      await this.relieve();
  }

  async relieve(): Promise<void> {
    const { rows, columns } = this.#columns;
    if (rows === 0) return;
    const data = this.#columns.take();
    this.held = 0;
    await this.#writer.write({
      rowGroupSize: rows,
      columnData: columns.map(({ name, type }, at) => ({
        name,
        data: data[at] ?? [],
        statistics: hasStatistics(type),
        offsetIndex: false,
      })),
    });
  }

  async finish(): Promise<{ bytes: number; sha256: string }> {
    await this.relieve();
    this.#writer.schema = schemaOf(this.#columns.columns, 'footer');
    await this.#writer.finish();
    await this.#bytes.flush();
    await this.#out.finish();
    return this.#out.facts();
  }

  async abandon(): Promise<void> {
    await this.#out.abandon();
  }
}
