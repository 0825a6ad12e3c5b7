import { pipeline, type Duplex } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { cutLines, type CutOptions, type Line } from '../lib/lines.ts';
import type { Bytes } from './place.ts';

const CHUNK = 512 * 1024;
/** Longer lines are reported and not kept: no event of this size came through the receiver. */
const LONGEST_LINE = 256 * 2 ** 20;

const DECOMPRESSORS: readonly [extension: string, make: () => Duplex & { bytesWritten: number }][] = [
  ['.gz', () => createGunzip({ chunkSize: CHUNK })],
  ['.zst', () => createZstdDecompress({ chunkSize: CHUNK })],
];

/**
 * The lines of a file, decompressed by its extension, in constant memory. Yields those of one chunk at a time.
 * @param onBytes sees every byte as it lies on disk, in order
 * @param passesOver as `cutLines` has it
 * @throws a zlib error when the file is damaged or cut short, or what the place throws
 */
export async function* fileLines(
  place: Bytes,
  file: string,
  onBytes?: (chunk: Buffer) => void,
  passesOver?: CutOptions['passesOver'],
): AsyncGenerator<Line[]> {
  yield* cutLines(fileChunks(place, file, onBytes), { longest: LONGEST_LINE, passesOver });
}

/** Larger files are no single event, whatever their names say. */
const LARGEST_EVENT = 256 * 2 ** 20;

/** The bytes of a file that holds one event. Throws what `fileLines` does, and when there are too many of them. */
export async function wholeEvent(place: Bytes, file: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of fileChunks(place, file)) {
    size += chunk.length;
    if (size > LARGEST_EVENT) throw new Error(`more than ${LARGEST_EVENT} bytes cannot be one event`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The bytes of a file, decompressed by its extension, as `fileLines` cuts them. Throws what that does. */
export async function* fileChunks(
  place: Bytes,
  file: string,
  onBytes?: (chunk: Buffer) => void,
): AsyncGenerator<Buffer> {
  let size = 0;
  const source = tap(place.chunks(file), (chunk) => {
    size += chunk.length;
    onBytes?.(chunk);
  });
  const make = DECOMPRESSORS.find(([extension]) => file.endsWith(extension))?.[1];
  if (make === undefined) {
    yield* source;
    return;
  }
  const decompressor = make();
  // An error of the source destroys the decompressor with it, so the loop below throws it.
  pipeline(source, decompressor, () => undefined);
  yield* decompressor as AsyncIterable<Buffer>;
  // Node reads one zstd frame of a chunk and drops what follows without a word.
  if (decompressor.bytesWritten < size) throw new Error('bytes follow after the end of the compressed data');
}

async function* tap(chunks: AsyncIterable<Buffer>, see: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    see(chunk);
    yield chunk;
  }
}
