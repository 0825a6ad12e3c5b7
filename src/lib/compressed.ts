import { Readable, type Duplex } from 'node:stream';
import { crc32, createInflateRaw, createZstdDecompress } from 'node:zlib';

export type Format = 'gzip' | 'zstd';

/** The compression of a text by its first bytes; null when it has none that is known. */
export function formatIn(bytes: Buffer): Format | null {
  if (bytes.length >= 2 && isGzip(bytes)) return 'gzip';
  return bytes.length >= 4 && (bytes.readUInt32LE(0) === ZSTD || isSkippable(bytes)) ? 'zstd' : null;
}

const ZSTD = 0xfd2fb528;
const isSkippable = (bytes: Buffer): boolean => bytes.readUInt32LE(0) >>> 4 === 0x184d2a5;
const isGzip = (bytes: Buffer): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b;

type Decompressor = Duplex & { readonly bytesWritten: number };

/**
 * Decompresses all members of a gzip text, or all frames of a zstd text; Node stops after the first frame. Zeros and white space
 * after a member are padding.
 * @param chunkSize bytes of each yielded buffer
 * @throws Error for damage, an early end, and other data after a member; what the source throws
 */
export async function* decompress(
  format: Format,
  source: AsyncIterable<Buffer>,
  chunkSize: number,
): AsyncGenerator<Buffer> {
  const input = new Input(source);
  try {
    do yield* format === 'gzip' ? member(input, chunkSize) : frame(input, chunkSize);
    while (await input.hasMore());
  } finally {
    await input.close();
  }
}

async function* frame(input: Input, chunkSize: number): AsyncGenerator<Buffer> {
  const magic = await input.peek(4);
  if (magic.length === 4 && isSkippable(magic)) {
    await input.take(4);
    for (let left = (await input.take(4)).readUInt32LE(0); left > 0;) left -= (await input.some(left)).length;
    return;
  }
  if (magic.length < 4 || magic.readUInt32LE(0) !== ZSTD) throw notCompressed('zstd frame', magic);
  yield* through(createZstdDecompress({ chunkSize }), input);
}

async function* member(input: Input, chunkSize: number): AsyncGenerator<Buffer> {
  const magic = await input.peek(2);
  if (!isGzip(magic)) throw notCompressed('gzip member', magic);
  const header = await input.take(10);
  const flags = header[3] ?? 0;
  if ((flags & 4) !== 0) await input.take((await input.take(2)).readUInt16LE(0));
  for (const text of [8, 16]) if ((flags & text) !== 0) while ((await input.take(1))[0] !== 0);
  if ((flags & 2) !== 0) await input.take(2);
  let [sum, size] = [0, 0];
  for await (const chunk of through(createInflateRaw({ chunkSize }), input)) {
    sum = crc32(chunk, sum);
    size = (size + chunk.length) >>> 0;
    yield chunk;
  }
  const trailer = await input.take(8);
  if (trailer.readUInt32LE(0) !== sum || trailer.readUInt32LE(4) !== size)
    throw new Error('the compressed data does not match its checksum');
}

function notCompressed(what: string, found: Buffer): Error {
  return new Error(found.length === 0 ? END : `incorrect header check: these bytes are no ${what}`);
}

const END = 'unexpected end of file';

/** The output of one decompressor. What it has not consumed goes back to the input. */
async function* through(decompressor: Decompressor, input: Input): AsyncGenerator<Buffer> {
  const given: Buffer[] = [];
  let before = 0;
  let failure: { readonly error: unknown } | null = null;
  const feed = Readable.from(
    (async function* () {
      try {
        for (let chunk = await input.next(); chunk !== null; chunk = await input.next()) {
          // Drops consumed chunks.
          for (let [first] = given; first !== undefined; [first] = given) {
            if (before + first.length > decompressor.bytesWritten) break;
            before += first.length;
            given.shift();
          }
          given.push(chunk);
          yield chunk;
        }
      } catch (error) {
        failure = { error };
        throw error;
      }
    })(),
    { highWaterMark: 1 },
  );
  feed.on('error', (error) => decompressor.destroy(error));
  feed.pipe(decompressor);
  try {
    yield* decompressor as AsyncIterable<Buffer>;
  } catch (error) {
    throw (failure as { readonly error: unknown } | null)?.error ?? error;
  } finally {
    const used = decompressor.bytesWritten;
    feed.unpipe(decompressor);
    feed.destroy();
    decompressor.destroy();
    await input.settled();
    input.giveBack(Buffer.concat(given).subarray(used - before));
  }
}

/** A source of bytes from which any number can be taken, and to which bytes can be given back. */
class Input {
  readonly #source: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);
  #reading: Promise<unknown> = Promise.resolve();

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** The next chunk; null at the end. */
  async next(): Promise<Buffer | null> {
    if (this.#held.length > 0) {
      const held = this.#held;
      this.#held = Buffer.alloc(0);
      return held;
    }
    const reading = this.#source.next();
    this.#reading = reading.catch(() => undefined);
    const { done, value } = await reading;
    return done === true ? null : value;
  }

  /** Resolves when no read of the source is pending. */
  async settled(): Promise<void> {
    await this.#reading;
  }

  giveBack(bytes: Buffer): void {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([bytes, this.#held]);
  }

  /** The next `count` bytes, or fewer at the end; they are not taken. */
  async peek(count: number): Promise<Buffer> {
    while (this.#held.length < count) {
      const held = this.#held;
      this.#held = Buffer.alloc(0);
      const more = await this.next();
      this.#held = more === null ? held : Buffer.concat([held, more]);
      if (more === null) break;
    }
    return this.#held.subarray(0, count);
  }

  /** The next `count` bytes. @throws Error when the source ends before */
  async take(count: number): Promise<Buffer> {
    const bytes = await this.peek(count);
    if (bytes.length < count) throw new Error(END);
    this.#held = this.#held.subarray(count);
    return bytes;
  }

  /** 1 to `most` bytes. @throws Error at the end */
  async some(most: number): Promise<Buffer> {
    await this.peek(1);
    return this.take(Math.max(1, Math.min(most, this.#held.length)));
  }

  /** Skips padding. @returns whether anything else follows */
  async hasMore(): Promise<boolean> {
    for (;;) {
      const [byte] = await this.peek(1);
      if (byte === undefined) return false;
      const end = this.#held.findIndex((one) => !PADDING.has(one));
      if (end !== -1) {
        this.#held = this.#held.subarray(end);
        return true;
      }
      this.#held = Buffer.alloc(0);
    }
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

const PADDING: ReadonlySet<number> = new Set([0, 9, 10, 13, 32]);
