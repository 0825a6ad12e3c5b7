import { Transform, type TransformCallback } from 'node:stream';
import {
  brotliDecompressSync,
  gunzipSync,
  gzipSync,
  zstdCompressSync,
  zstdDecompressSync,
  type ZlibOptions,
} from 'node:zlib';
import { here } from './world.ts';

// Stands in for node:zlib, whose threads would finish in an order of their own.
export * from 'node:zlib';

type Sync = (bytes: Buffer) => Buffer;

/** All at once, when the input has ended. */
class Whole extends Transform {
  readonly #pieces: Buffer[] = [];
  readonly #work: Sync;

  constructor(work: Sync) {
    super();
    this.#work = work;
  }

  override _transform(piece: Buffer, _encoding: string, done: TransformCallback): void {
    this.#pieces.push(piece);
    done();
  }

  override _flush(done: TransformCallback): void {
    try {
      done(null, this.#work(Buffer.concat(this.#pieces)));
    } catch (error) {
      done(error as Error);
    }
  }
}

export const createGzip = (options?: ZlibOptions): Transform =>
  new Whole((bytes) => gzipSync(bytes, options));
export const createGunzip = (): Transform => new Whole(gunzipSync);
export const createZstdCompress = (): Transform => new Whole(zstdCompressSync);
export const createZstdDecompress = (): Transform => new Whole(zstdDecompressSync);
export const createBrotliDecompress = (): Transform => new Whole(brotliDecompressSync);

type Done = (error: Error | null, bytes?: Buffer) => void;

export function gzip(bytes: Buffer, options: ZlibOptions | Done, done?: Done): void {
  const settings = typeof options === 'function' ? {} : options;
  const call = typeof options === 'function' ? options : done;
  here().scheduler.later(() => call?.(null, gzipSync(bytes, settings)));
}

export function gunzip(bytes: Buffer, done: Done): void {
  here().scheduler.later(() => done(null, gunzipSync(bytes)));
}
