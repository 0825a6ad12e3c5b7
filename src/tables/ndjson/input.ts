import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { messageOf } from '../../core/errors.ts';
import { decompress, formatIn, type Format } from '../../lib/compressed.ts';

const CHUNK = 256 * 1024;
/** Bytes that tell how a text is compressed. */
const MAGIC = 4;

/** The bytes of a file or pipe, for reading once. */
export interface Input {
  /** Size in bytes; null when it is not known before the end. */
  readonly size: number | null;
  /** A chunk is valid until the next one is asked for. */
  readonly chunks: AsyncIterable<Buffer>;
  /** SHA-256 of a file's bytes. Synchronous, because it is needed in the middle of shaping, and rarely. */
  readonly hash?: () => string;
  /** Has to be called also if nothing was read. */
  close(): Promise<void>;
}

/**
 * Opens a file, a FIFO or a device to be read in large chunks.
 * @throws the system's error
 */
export async function openFile(path: string): Promise<Input> {
  const handle = await open(path);
  try {
    const stats = await handle.stat();
    if (stats.isDirectory()) throw new Error(`${path} is a folder`);
    const input = { size: null, chunks: readAhead(handle), close: () => handle.close() };
    return stats.isFile() ? { ...input, size: stats.size, hash: () => hashOf(path) } : input;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function hashOf(path: string): string {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.allocUnsafeSlow(CHUNK);
    const digest = createHash('sha256');
    for (let length = 1; length > 0;) {
      length = readSync(file, bytes, 0, bytes.length, null);
      digest.update(bytes.subarray(0, length));
    }
    return digest.digest('hex');
  } finally {
    closeSync(file);
  }
}

/** Reads the next chunk while the caller has the last one. Two buffers take turns. */
async function* readAhead(handle: FileHandle): AsyncGenerator<Buffer> {
  let spare: Buffer = Buffer.allocUnsafeSlow(CHUNK);
  const read = (into: Buffer): Promise<{ bytesRead: number; buffer: Buffer }> => {
    const reading = handle.read(into, 0, CHUNK, null);
    reading.catch(() => undefined);
    return reading;
  };
  let next = read(Buffer.allocUnsafeSlow(CHUNK));
  try {
    for (;;) {
      const { bytesRead, buffer } = await next;
      if (bytesRead === 0) return;
      next = read(spare);
      spare = buffer;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await next.catch(() => undefined);
    await handle.close();
  }
}

/**
 * Decompresses gzip and zstd, which are recognised by their first bytes; other text passes through.
 * @throws DamagedText while it is read
 */
export async function* decompressed(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = chunks[Symbol.asyncIterator]();
  const rest: AsyncIterable<Buffer> = { [Symbol.asyncIterator]: () => source };
  try {
    const first = await firstBytes(source, MAGIC);
    const format = formatIn(first);
    yield* format === null ? after(first, rest) : through(format, after(first, rest));
  } finally {
    await source.return?.();
  }
}

/** A pipe may deliver single bytes. */
async function firstBytes(source: AsyncIterator<Buffer>, wanted: number): Promise<Buffer> {
  let first: Buffer = Buffer.alloc(0);
  while (first.length < wanted) {
    const { done, value } = await source.next();
    if (done === true) break;
    // A copy: the chunk is overwritten when the next one is asked for.
    first = Buffer.concat([first, value]);
  }
  return first;
}

async function* after(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}

async function* through(format: Format, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let failure: { error: unknown } | null = null;
  const copies = async function* (): AsyncGenerator<Buffer> {
    try {
      // Copies, because a stream keeps chunks for longer than they are valid.
      for await (const chunk of source) yield Buffer.from(chunk);
    } catch (error) {
      failure = { error };
      throw error;
    }
  };
  try {
    yield* decompress(format, copies(), CHUNK);
  } catch (error) {
    const sources = failure as { error: unknown } | null;
    if (sources !== null) throw sources.error;
    const reason = `the compressed data is damaged or truncated: ${messageOf(error)}`;
    throw new DamagedText('cut', reason, { cause: error });
  }
}

/** The rest of a text cannot be read. What came before it is valid. */
export class DamagedText extends Error {
  readonly code: 'cut' | 'broken';

  constructor(code: DamagedText['code'], reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'DamagedText';
    this.code = code;
  }
}
