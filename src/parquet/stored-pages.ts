import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { AsyncBuffer, CompressionCodec, Compressors } from 'hyparquet';

/** Whoever wrote a file chose how it is compressed; Snappy the reader knows itself. */
export const DECOMPRESS: Compressors = {
  GZIP: (bytes) => gunzipSync(bytes),
  ZSTD: (bytes) => zstdDecompressSync(bytes),
  BROTLI: (bytes) => brotliDecompressSync(bytes),
};

/** Whether what is compressed like this can be read. */
export function isKnown(codec: CompressionCodec): boolean {
  return codec === 'UNCOMPRESSED' || codec === 'SNAPPY' || codec in DECOMPRESS;
}

/** Bytes as the reader takes them. */
export function bufferOf(bytes: Buffer): AsyncBuffer {
  return {
    byteLength: bytes.length,
    slice: (from, to) => Uint8Array.from(bytes.subarray(from, to)).buffer,
  };
}
