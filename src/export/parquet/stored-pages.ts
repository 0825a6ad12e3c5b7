import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { AsyncBuffer, CompressionCodec, Compressors } from 'hyparquet';

/** Codecs of files of any writer; the reader has Snappy itself. */
export const DECOMPRESS: Compressors = {
  GZIP: (bytes, length) => gunzipSync(bytes, atMost(length)),
  ZSTD: (bytes, length) => zstdDecompressSync(bytes, atMost(length)),
  BROTLI: (bytes, length) => brotliDecompressSync(bytes, atMost(length)),
};

/** A page that is larger than it says is damaged, or a bomb. */
function atMost(length: number): { readonly maxOutputLength: number } {
  return { maxOutputLength: Math.max(1, length) };
}

/** True for a codec that can be read. */
export function isKnown(codec: CompressionCodec): boolean {
  return codec === 'UNCOMPRESSED' || codec === 'SNAPPY' || codec in DECOMPRESS;
}

/** Bytes for the Parquet reader. */
export function bufferOf(bytes: Buffer): AsyncBuffer {
  return {
    byteLength: bytes.length,
    slice: (from, to) => Uint8Array.from(bytes.subarray(from, to)).buffer,
  };
}
