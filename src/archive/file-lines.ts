import { extname } from 'node:path';
import { isOldParquet, LONGEST_LINE } from '../core/archive.ts';
import { decompress, type Format, formatIn } from '../lib/compressed.ts';
import { cutLines, type CutOptions, type Line, tap } from '../lib/lines.ts';
import type { Bytes } from './place.ts';

const CHUNK = 512 * 1024;

const OLD_PARQUET =
  'archives of Parquet files are no longer read; with the version before, replay the archive into a files sink of NDJSON';

const FORMATS: Readonly<Record<string, Format>> = { '.gz': 'gzip', '.zst': 'zstd' };

interface ByteOptions {
  /** Called with the bytes on disk, in order, up to the first damage. */
  readonly onBytes?: ((chunk: Buffer) => void) | undefined;
  /** For a file of another program: its first bytes say whether it is compressed. */
  readonly isForeign?: boolean | undefined;
}

export interface LineOptions extends ByteOptions, Pick<CutOptions, 'passesOver'> {
  /** Frees the memory of lines when the next ones are asked for. */
  readonly frees?: boolean | undefined;
}

/**
 * The lines of a file, a chunk at a time, decompressed by its extension, in constant memory.
 * @throws an error of zlib when the file is damaged or cut short, an Error for old Parquet files, or what the place throws
 */
export async function* fileLines(
  place: Bytes,
  file: string,
  { passesOver, frees = false, ...about }: LineOptions = {},
): AsyncGenerator<Line[]> {
  const onTaken = frees ? (chunk: Buffer): void => freeChunk(file, chunk) : undefined;
  yield* cutLines(fileChunks(place, file, about), { longest: LONGEST_LINE, passesOver, onTaken });
}

/** The bytes of a file with one event. Throws as `fileLines`, and for a file that is too large. */
export async function wholeEvent(place: Bytes, file: string, isForeign = false): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of fileChunks(place, file, { isForeign })) {
    size += chunk.length;
    if (size > LONGEST_LINE) throw new Error(`more than ${LONGEST_LINE} bytes cannot be one event`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The bytes of a file, decompressed by its extension. Throws as `fileLines`. */
export async function* fileChunks(
  place: Bytes,
  file: string,
  { onBytes, isForeign = false }: ByteOptions = {},
): AsyncGenerator<Buffer> {
  if (isOldParquet(file)) throw new Error(OLD_PARQUET);
  const source = tap(place.chunks(file), (chunk) => onBytes?.(chunk));
  const format = formatOf(file);
  if (format !== undefined) yield* decompress(format, source, CHUNK);
  else yield* isForeign ? decompressIfNeeded(source) : source;
}

/**
 * Frees the memory of chunks that are no longer used, once the last chunk in it ends: new buffers all the time would
 * keep the garbage collector busy.
 */
export function freeChunk(file: string, { buffer, byteOffset, length }: Buffer): void {
  // An uncompressed chunk can be part of another buffer.
  if (formatOf(file) === undefined || buffer.byteLength !== CHUNK) return;
  if (byteOffset + length === CHUNK && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

async function* decompressIfNeeded(source: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const first = await source.next();
  if (first.done === true) return;
  const whole = (async function* () {
    yield first.value;
    yield* source;
  })();
  const format = formatIn(first.value);
  yield* format === null ? whole : decompress(format, whole, CHUNK);
}

function formatOf(file: string): Format | undefined {
  return FORMATS[extname(file)];
}
