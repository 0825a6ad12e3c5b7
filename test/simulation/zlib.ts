import { gunzipSync, gzipSync, type ZlibOptions } from 'node:zlib';
import { here } from './world.ts';

// Stands in for node:zlib, whose threads would finish in an order of their own.
export * from 'node:zlib';
export {
  createBrotliDecompress,
  createGunzip,
  createGzip,
  createZstdCompress,
  createZstdDecompress,
} from '../support/whole-zlib.ts';

type Done = (error: Error | null, bytes?: Buffer) => void;

export function gzip(bytes: Buffer, options: ZlibOptions | Done, done?: Done): void {
  const settings = typeof options === 'function' ? {} : options;
  const call = typeof options === 'function' ? options : done;
  here().scheduler.later(() => call?.(null, gzipSync(bytes, settings)));
}

export function gunzip(bytes: Buffer, done: Done): void {
  here().scheduler.later(() => done(null, gunzipSync(bytes)));
}
