import * as zlib from 'node:zlib';

// Stands in for node:zlib where it would compress in a thread of libuv.
export * from 'node:zlib';
export {
  createGunzip,
  createGzip,
  createZstdCompress,
  createZstdDecompress,
} from '../../support/whole-zlib.ts';

type Done = (error: Error | null, bytes?: Buffer) => void;

export function gzip(bytes: Buffer, options: zlib.ZlibOptions | Done, done?: Done): void {
  const [settings, call] = typeof options === 'function' ? [{}, options] : [options, done];
  process.nextTick(() => call?.(null, zlib.gzipSync(bytes, settings)));
}
