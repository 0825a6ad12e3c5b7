import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { AsyncBuffer, Compressors } from 'hyparquet';

/** Whoever wrote a file chose how it is compressed; Snappy the reader knows itself. */
export const DECOMPRESS: Compressors = {
  GZIP: (bytes) => gunzipSync(bytes),
  ZSTD: (bytes) => zstdDecompressSync(bytes),
};

/** Bytes as the reader takes them. */
export function bufferOf(bytes: Buffer): AsyncBuffer {
  return {
    byteLength: bytes.length,
    slice: (from, to) => Uint8Array.from(bytes.subarray(from, to)).buffer,
  };
}
