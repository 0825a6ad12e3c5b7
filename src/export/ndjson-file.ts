import { promisify } from 'node:util';
import { gzip, zstdCompress } from 'node:zlib';
import type { HashedFile } from '../lib/new-file.ts';
import { GZIP_LEVEL, type ExportCompression, type RowFile } from './row-file.ts';

/** Lines are gathered to pieces of this size, and each is compressed on its own. */
const PIECE = 1024 * 1024;

const COMPRESS: Readonly<Record<ExportCompression, (bytes: Buffer) => Promise<Buffer>>> = {
  // Members one after another are one gzip file, and frames one zstd file, to every reader.
  gzip: (bytes) => promisify(gzip)(bytes, { level: GZIP_LEVEL }),
  zstd: (bytes) => promisify(zstdCompress)(bytes),
  none: (bytes) => Promise.resolve(bytes),
};

export const NDJSON_EXTENSIONS = { none: '.ndjson', gzip: '.ndjson.gz', zstd: '.ndjson.zst' } as const;

/** Rows as lines of NDJSON. */
export class NdjsonFile implements RowFile {
  rows = 0;
  held = 0;
  writing = 0;
  readonly #out: HashedFile;
  readonly #compress: (bytes: Buffer) => Promise<Buffer>;
  #pieces: Buffer[] = [];
  #written = Promise.resolve();

  /** @param out empty */
  constructor(out: HashedFile, compression: ExportCompression) {
    this.#out = out;
    this.#compress = COMPRESS[compression];
  }

  /** Takes whole lines, valid until the promise resolves. */
  async write(lines: Buffer, rows: number): Promise<void> {
    this.#pieces.push(Buffer.from(lines));
    this.held += lines.length;
    this.rows += rows;
    if (this.held >= PIECE) await this.relieve();
  }

  async relieve(): Promise<void> {
    if (this.held === 0) return;
    await this.#written;
    const piece = Buffer.concat(this.#pieces, this.held);
    this.#pieces = [];
    this.held = 0;
    this.writing = piece.length;
    this.#written = this.#write(piece).finally(() => (this.writing = 0));
    // Whoever comes next waits for it and is told.
    this.#written.catch(() => undefined);
  }

  async settled(): Promise<void> {
    await this.#written;
  }

  async finish(): Promise<{ bytes: number; sha256: string }> {
    await this.relieve();
    await this.#written;
    await this.#out.finish();
    return this.#out.facts();
  }

  async abandon(): Promise<void> {
    await this.#written.catch(() => undefined);
    await this.#out.abandon();
  }

  async #write(piece: Buffer): Promise<void> {
    await this.#out.write(await this.#compress(piece));
  }
}
