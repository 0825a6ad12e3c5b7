import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { AsyncBuffer, CompressionCodec, Compressors } from 'hyparquet';

/** Whoever wrote a file chose how it is compressed; Snappy the reader knows itself. */
export const DECOMPRESS: Compressors = {
  GZIP: (bytes, length) => gunzipSync(bytes, atMost(length)),
  ZSTD: (bytes, length) => zstdDecompressSync(bytes, atMost(length)),
  BROTLI: (bytes, length) => brotliDecompressSync(bytes, atMost(length)),
};

/** A page that becomes larger than it says is damaged, or a bomb. */
function atMost(length: number): { readonly maxOutputLength: number } {
  return { maxOutputLength: Math.max(1, length) };
}

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
