import { pipeline } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { readPlain } from '../lib/durable.ts';

/** Larger files are no single event. */
const LARGEST = 256 * 2 ** 20;

/**
 * The bytes of a small file, decompressed by its extension.
 * @throws NotFollowed, a zlib error, the system's error, or an Error when there are too many of them
 */
export async function readWhole(path: string): Promise<Buffer> {
  const bytes = readPlain(path);
  const decompressor = path.endsWith('.gz')
    ? createGunzip()
    : path.endsWith('.zst')
      ? createZstdDecompress()
      : null;
  if (decompressor === null) return buffer(bounded(bytes));
  // An error of the source destroys the decompressor with it, so reading that throws it.
  pipeline(bytes, decompressor, () => undefined);
  return buffer(bounded(decompressor));
}

async function* bounded(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > LARGEST) throw new Error(`more than ${LARGEST} bytes are no single event`);
    yield chunk;
  }
}
