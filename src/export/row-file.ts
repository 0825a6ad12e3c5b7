import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { CREATE_NEW, openPlain, writeAll } from '../lib/durable.ts';

/** How rows are compressed inside a file. */
export const COMPRESSIONS = ['gzip', 'zstd', 'none'] as const;

export type ExportCompression = (typeof COMPRESSIONS)[number];

/** On JSON two thirds faster than zlib's default, and 4 % larger. */
export const GZIP_LEVEL = 4;

/** A file of rows on its way out, under a temporary name. */
export interface RowFile {
  readonly rows: number;
  /** Bytes of rows that are held in memory. */
  readonly held: number;
  /** Takes whole lines of NDJSON, valid until the promise resolves. */
  write(lines: Buffer, rows: number): Promise<void>;
  /** Writes what is held. */
  relieve(): Promise<void>;
  /** Makes the file complete and durable, and closes it. */
  finish(): Promise<{ bytes: number; sha256: string }>;
  /** Closes it as it is. */
  abandon(): Promise<void>;
}

/** Appends to a new file and hashes what it writes. */
export class Appender {
  readonly #handle: FileHandle;
  readonly #hash = createHash('sha256');
  #bytes = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  static async create(path: string): Promise<Appender> {
    return new Appender(await openPlain(path, CREATE_NEW));
  }

  async append(bytes: Buffer): Promise<void> {
    this.#hash.update(bytes);
    await writeAll(this.#handle, bytes, this.#bytes);
    this.#bytes += bytes.length;
  }

  async finish(): Promise<{ bytes: number; sha256: string }> {
    await this.#handle.sync();
    await this.#handle.close();
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}
