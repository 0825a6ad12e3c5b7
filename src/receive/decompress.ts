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

/** The smallest window that a brotli stream can be made to ask for where it asks for more. */
const SMALLEST_WINDOW = 18;

/** A frame may ask for a window of gigabytes; RFC 9659 says that no HTTP sender needs more than 8 MiB. */
const ZSTD = { [constants.ZSTD_d_windowLogMax]: 23 };

/** What is small is undone at once: handing it to another thread and back takes ten times as long as the work. */
const AT_ONCE = {
  gzip: gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};
const ASIDE = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
};

/** Undoes a compression on the thread that calls; for a `limit` of some 10 KiB. */
export function decompressSmall(bytes: Buffer, encoding: Compression, limit: number): Decompressed {
  try {
    if (encoding === 'zstd') {
      const frames = new Frames(bytes, limit);
      while (frames.hasMore) frames.add(zstdDecompressSync(frames.rest, frames.options));
      return frames.result;
    }
    return whole(bytes, AT_ONCE[encoding](prepared(bytes, encoding, limit), optionsOf(encoding, limit)));
  } catch (error) {
    return refusalOf(error);
  }
}

/** The same on another thread. */
export async function decompress(bytes: Buffer, encoding: Compression, limit: number): Promise<Decompressed> {
  try {
    if (encoding === 'zstd') {
      const frames = new Frames(bytes, limit);
      while (frames.hasMore) frames.add(await ASIDE.zstd(frames.rest, frames.options));
      return frames.result;
    }
    return whole(bytes, await ASIDE[encoding](prepared(bytes, encoding, limit), optionsOf(encoding, limit)));
  } catch (error) {
    return refusalOf(error);
  }
}

/** How many bytes may come out before `limit` is found to be passed. */
export function mostOutput(encoding: Compression, limit: number): number {
  return encoding === 'br' ? Math.max(limit, 2 ** SMALLEST_WINDOW) : limit;
}

const CHUNK = 64 * 1024;

function optionsOf(encoding: Compression, limit: number) {
  const options = { maxOutputLength: limit, chunkSize: Math.min(limit + 64, CHUNK + 64), info: true };
  return encoding === 'zstd' ? { ...options, params: ZSTD } : options;
}

/** Frames of one body: each costs a decoder, and no sender needs many. */
const MOST_FRAMES = 16;

/** The frames of a zstd body, of which Node undoes one at a time; a skippable one is empty. */
class Frames {
  rest: Buffer;
  readonly #limit: number;
  readonly #pieces: Buffer[] = [];
  #size = 0;

  constructor(bytes: Buffer, limit: number) {
    this.rest = bytes;
    this.#limit = limit;
  }

  get hasMore(): boolean {
    const isBegun = this.#pieces.length > 0;
    return (
      !isBegun || (this.rest.length > 0 && this.#size <= this.#limit && this.#pieces.length < MOST_FRAMES)
    );
  }

  get options(): ReturnType<typeof optionsOf> {
    return optionsOf('zstd', Math.max(1, this.#limit - this.#size));
  }

  add(result: InputType): void {
    const { buffer, engine } = result as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
    // What is no frame uses nothing up.
    const used = engine.bytesWritten === 0 ? this.rest.length + 1 : engine.bytesWritten;
    this.#pieces.push(buffer);
    this.#size += buffer.length;
    if (used > this.rest.length) throw new Error('these bytes are no zstd frame');
    this.rest = this.rest.subarray(used);
  }

  get result(): Decompressed {
    if (this.#size > this.#limit) return { ok: false, tooLarge: true };
    return this.rest.length > 0
      ? { ok: false, tooLarge: false }
      : {
          ok: true,
          body: this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces),
        };
  }
}

/** Bytes after the end were signed by nobody and belong to nothing, whatever the compression. */
function whole(bytes: Buffer, result: InputType): Decompressed {
  // With `info` that is what comes, which the types do not know.
  const { buffer, engine } = result as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
  return engine.bytesWritten === bytes.length ? { ok: true, body: buffer } : { ok: false, tooLarge: false };
}

function refusalOf(error: unknown): Decompressed {
  const tooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
  return { ok: false, tooLarge };
}

function prepared(bytes: Buffer, encoding: Compression, limit: number): Buffer {
  return encoding === 'br' ? withSmallWindow(bytes, limit) : bytes;
}

/**
 * A brotli decoder fills its whole window, up to 16 MiB, before it says anything: 100 bytes then take 7 ms whatever limit
 * is set. A stream that ends within `limit` decodes the same with any window that holds as much, so its head is made to
 * ask for no more (RFC 7932, 9.1: a 1 and three bits that say 17 + n; other ways to write a window are for up to 128 KiB).
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
