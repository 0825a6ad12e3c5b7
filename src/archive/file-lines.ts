import { extname } from 'node:path';
import { isOldParquet, LONGEST_LINE } from '../core/archive.ts';
import { decompress, type Format } from '../lib/compressed.ts';
import { cutLines, type CutOptions, type Line } from '../lib/lines.ts';
import type { Bytes } from './place.ts';

const CHUNK = 512 * 1024;

const OLD_PARQUET =
  'archives of Parquet files are no longer read; with the version before, replay the archive into a files sink of NDJSON';

const FORMATS: Readonly<Record<string, Format>> = { '.gz': 'gzip', '.zst': 'zstd' };

/** What else is wanted of a file that is read. */
export interface WhileReading {
  /** Sees every byte as it lies on disk, in order. */
  readonly onBytes?: ((chunk: Buffer) => void) | undefined;
}

interface LinesWanted extends WhileReading, Pick<CutOptions, 'passesOver'> {
  /** Lines are looked at before the next ones are asked for, and not any more afterwards: their memory is used again. */
  readonly frees?: boolean | undefined;
}

/**
 * The lines of a file, decompressed by its extension, in constant memory. Yields those of one chunk at a time.
 * @param wanted `passesOver` as `cutLines` has it
 * @throws an error of zlib when the file is damaged or cut short, an Error for old Parquet files, or what the place throws
 */
export async function* fileLines(
  place: Bytes,
  file: string,
  { passesOver, frees = false, ...wanted }: LinesWanted = {},
): AsyncGenerator<Line[]> {
  const onTaken = frees ? (chunk: Buffer): void => freeChunk(file, chunk) : undefined;
  yield* cutLines(fileChunks(place, file, wanted), { longest: LONGEST_LINE, passesOver, onTaken });
}

/** The bytes of a file that holds one event. Throws what `fileLines` does, and when there are too many of them. */
export async function wholeEvent(place: Bytes, file: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of fileChunks(place, file)) {
    size += chunk.length;
    if (size > LONGEST_LINE) throw new Error(`more than ${LONGEST_LINE} bytes cannot be one event`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The bytes of a file, decompressed by its extension, as `fileLines` cuts them. Throws what that does. */
export async function* fileChunks(
  place: Bytes,
  file: string,
  { onBytes }: WhileReading = {},
): AsyncGenerator<Buffer> {
  if (isOldParquet(file)) throw new Error(OLD_PARQUET);
  const source = tap(place.chunks(file), (chunk) => onBytes?.(chunk));
  const format = formatOf(file);
  yield* format === undefined ? source : decompress(format, source, CHUNK);
}

/**
 * Frees the memory of chunks of a file that nobody looks at any more, when it holds no others: `fileChunks` makes buffers anew all
 * the time, and to let them wait for the garbage collector keeps it busy. Each is filled by several chunks, of which the last is the
 * one at its end.
 */
export function freeChunk(file: string, { buffer, byteOffset, length }: Buffer): void {
  // What comes from a place as it is may be part of something else.
  if (formatOf(file) === undefined || buffer.byteLength !== CHUNK) return;
  if (byteOffset + length === CHUNK && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

function formatOf(file: string): Format | undefined {
  return FORMATS[extname(file)];
}

async function* tap(chunks: AsyncIterable<Buffer>, see: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    see(chunk);
    yield chunk;
  }
}
