import { promisify } from 'node:util';
import {
  brotliDecompress,
  brotliDecompressSync,
  constants,
  gunzip,
  gunzipSync,
  inflate,
  inflateSync,
  type InputType,
  zstdDecompress,
  zstdDecompressSync,
} from 'node:zlib';
import type { Encoding } from './examine.ts';

export type Compression = Exclude<Encoding, 'identity'>;

export type Decompressed =
  { readonly ok: true; readonly body: Buffer } | { readonly ok: false; readonly tooLarge: boolean };

/** Log2 of the smallest window that the head of a brotli stream is changed to. */
const SMALLEST_WINDOW = 18;

/** A frame may ask for a window of gigabytes; RFC 9659 limits HTTP to 8 MiB. */
const ZSTD = { [constants.ZSTD_d_windowLogMax]: 23 };

/** For small bodies: passing one to another thread takes ten times as long as the work. */
const INLINE = {
  gzip: gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};
const IN_THREAD = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
};

/** Decompresses on the calling thread; for a `limit` of some 10 KiB. */
export function decompressSmall(bytes: Buffer, encoding: Compression, limit: number): Decompressed {
  const frames = new Frames(bytes, encoding, limit);
  try {
    while (frames.hasMore) frames.add(INLINE[encoding](frames.rest, frames.options));
    return frames.result;
  } catch (error) {
    return refusalOf(error);
  }
}

/** The same on another thread. */
export async function decompress(bytes: Buffer, encoding: Compression, limit: number): Promise<Decompressed> {
  const frames = new Frames(bytes, encoding, limit);
  try {
    while (frames.hasMore) frames.add(await IN_THREAD[encoding](frames.rest, frames.options));
    return frames.result;
  } catch (error) {
    return refusalOf(error);
  }
}

/** Most bytes that are decompressed before it is found that there are more than `limit`. */
export function mostOutput(encoding: Compression, limit: number): number {
  return encoding === 'br' ? Math.max(limit, 2 ** SMALLEST_WINDOW) : limit;
}

const CHUNK = 64 * 1024;
/** Frames of one zstd body: each costs a decoder, and no sender needs many. */
const MOST_FRAMES = 16;

/** The frames of a body. Only zstd has several, of which node decompresses one at a time; a skippable one is empty. */
class Frames {
  /** What is not decompressed yet. */
  rest: Buffer;
  readonly #encoding: Compression;
  readonly #limit: number;
  readonly #pieces: Buffer[] = [];
  #size = 0;

  constructor(bytes: Buffer, encoding: Compression, limit: number) {
    this.rest = encoding === 'br' ? withSmallWindow(bytes, limit) : bytes;
    this.#encoding = encoding;
    this.#limit = limit;
  }

  get hasMore(): boolean {
    const { length: count } = this.#pieces;
    if (count === 0) return true;
    const mayFollow = this.#encoding === 'zstd' && count < MOST_FRAMES && this.#size <= this.#limit;
    return mayFollow && this.rest.length > 0;
  }

  get options() {
    const maxOutputLength = Math.max(1, this.#limit - this.#size);
    const options = { maxOutputLength, chunkSize: Math.min(maxOutputLength + 64, CHUNK + 64), info: true };
    return this.#encoding === 'zstd' ? { ...options, params: ZSTD } : options;
  }

  /** @throws Error when the rest is no frame */
  add(result: InputType): void {
    // The result with `info: true`, which is missing in the types.
    const { buffer, engine } = result as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
    const { bytesWritten } = engine;
    if (bytesWritten === 0 || bytesWritten > this.rest.length) throw new Error('these bytes are no frame');
    this.#pieces.push(buffer);
    this.#size += buffer.length;
    this.rest = this.rest.subarray(bytesWritten);
  }

  /** Bytes after the end are refused: they are not signed. */
  get result(): Decompressed {
    if (this.#size > this.#limit) return { ok: false, tooLarge: true };
    if (this.rest.length > 0) return { ok: false, tooLarge: false };
    const [only] = this.#pieces;
    const isOne = only !== undefined && this.#pieces.length === 1;
    return { ok: true, body: isOne ? only : Buffer.concat(this.#pieces) };
  }
}

function refusalOf(error: unknown): Decompressed {
  const tooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
  return { ok: false, tooLarge };
}

/**
 * Limits the window of a brotli stream. A decoder fills its whole window, up to 16 MiB, before its first output: 100 bytes
 * then take 7 ms whatever the limit is. A stream that ends within `limit` decodes the same with any window of that size, so
 * its head is changed (RFC 7932, 9.1: a 1 and three bits for 17 + n; other heads have windows up to 128 KiB).
 * @returns a copy, or `bytes` when there is nothing to change
 */
function withSmallWindow(bytes: Buffer, limit: number): Buffer {
  const [head = 0] = bytes;
  const declared = (head >> 1) & 7;
  if ((head & 1) === 0 || declared === 0) return bytes;
  const needed = Math.max(SMALLEST_WINDOW, Math.ceil(Math.log2(limit + 16))) - 17;
  if (declared <= needed) return bytes;
  const copy = Buffer.from(bytes);
  copy[0] = (head & 0xf0) | 1 | (needed << 1);
  return copy;
}
