import { promisify } from 'node:util';
import { gzip, gzipSync, zstdCompress, zstdCompressSync } from 'node:zlib';
import { asBuffer, joined } from '../lib/byte-writer.ts';
import type { HashedFile } from '../lib/new-file.ts';
import { GZIP_LEVEL, type Compression } from '../core/compression.ts';
import { RowFile, type LinesOfRows, type RowBatch } from './row-file.ts';

/** Pieces of this size are compressed alone. */
const PIECE = 1024 * 1024;

const COMPRESS: Readonly<Record<Compression, (bytes: Buffer) => Promise<Buffer>>> = {
  // Readers take several members as one gzip file, and several frames as one zstd file.
  gzip: (bytes) => promisify(gzip)(bytes, { level: GZIP_LEVEL }),
  zstd: (bytes) => promisify(zstdCompress)(bytes),
  none: (bytes) => Promise.resolve(bytes),
};

const COMPRESS_HERE: Readonly<Record<Compression, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: (bytes) => gzipSync(bytes, { level: GZIP_LEVEL }),
  zstd: (bytes) => zstdCompressSync(bytes),
  none: (bytes) => bytes,
};

/** Compresses lines in the calling thread, unless they are too few for a piece. Returns a buffer of its own. */
export function packLines(lines: Uint8Array, compression: Compression): LinesOfRows {
  if (lines.length < PIECE) return { lines: joined([lines]), packed: false };
  const pieces: Uint8Array[] = [];
  for (let from = 0; from < lines.length; from += PIECE)
    pieces.push(COMPRESS_HERE[compression](lines.subarray(from, from + PIECE)));
  return { lines: joined(pieces), packed: true };
}

/** Rows as lines of NDJSON. */
export class NdjsonFile extends RowFile {
  readonly #out: HashedFile;
  readonly #compress: (bytes: Buffer) => Promise<Buffer>;
  #pieces: Uint8Array[] = [];

  /** @param out empty */
  constructor(out: HashedFile, compression: Compression) {
    super();
    this.#out = out;
    this.#compress = COMPRESS[compression];
  }

  async add({ table, rows, content }: RowBatch): Promise<void> {
    if (!('lines' in content)) throw new TypeError(`${table} takes lines only`);
    const { lines, packed } = content;
    if (packed) {
      await this.relieve();
      this.rows += rows;
      return this.begin(lines.length, () => this.#out.write(asBuffer(lines)));
    }
    this.#pieces.push(lines);
    this.held += lines.length;
    this.rows += rows;
    if (this.held >= PIECE) await this.relieve();
  }

  async relieve(): Promise<void> {
    if (this.held === 0) return;
    const piece = Buffer.concat(this.#pieces, this.held);
    this.#pieces = [];
    this.held = 0;
    await this.begin(piece.length, async () => this.#out.write(await this.#compress(piece)));
  }

  async finish(): Promise<{ bytes: number; sha256: string }> {
    await this.relieve();
    await this.settled();
    await this.#out.finish();
    return this.#out.facts();
  }

  protected remove(): Promise<void> {
    return this.#out.abandon();
  }
}
