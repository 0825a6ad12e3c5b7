import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, constants, gunzip, inflate, zstdDecompress } from 'node:zlib';
import PQueue from 'p-queue';
import { getRawBody } from 'raw-body';
import type { Share } from './budget.ts';
import type { Encoding } from './content.ts';

export type BodyResult =
  | { readonly ok: true; readonly body: Buffer }
  | {
      readonly ok: false;
      readonly code: 'body_too_large' | 'body_malformed' | 'overloaded';
      readonly detail: string;
    }
  /** The sender went away, or was cut off, before the body was complete. */
  | { readonly ok: false; readonly code: 'gone' };

type Refusal = Extract<BodyResult, { detail: string }>;

const CROWDED: Refusal = { ok: false, code: 'overloaded', detail: 'too many bodies are being received' };
const CRUMBLED: Refusal = {
  ok: false,
  code: 'body_malformed',
  detail: 'the body comes in too many small pieces',
};

/**
 * Memory that a piece takes beside its bytes. Without a bound on pieces, a body sent in chunks of one byte would take a
 * hundred times the limit. Beyond the free ones, pieces must be of this size on average; packets are far above it.
 */
const PIECE_BYTES = 256;
const FREE_PIECES = 4096;
const MIN_PIECE = 64;

/**
 * What a compressed body may become without waiting: a few bytes can ask for the whole limit, and without this bound a
 * few hundred senders, whom nobody has verified yet, would take gigabytes. What turns out larger goes a few at a time.
 */
const LIKELY_BYTES = 64 * 1024;
const LIKELY_RATIO = 32;
const LARGE = new PQueue({ concurrency: 4 });
/** Brotli and zstd open windows of up to 16 MiB however little comes out of them. */
const WINDOWED = new PQueue({ concurrency: 16 });

/** How many bodies wait to be decompressed. */
export function waitingBodies(): number {
  return LARGE.size + WINDOWED.size;
}

/** A frame may ask for a window of gigabytes; RFC 9659 says that no HTTP sender needs more than 8 MiB. */
const ZSTD = { [constants.ZSTD_d_windowLogMax]: 23 };

const DECOMPRESS = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: (bytes: Buffer, options: { maxOutputLength: number }) =>
    promisify(zstdDecompress)(bytes, { ...options, params: ZSTD }),
} satisfies Record<Exclude<Encoding, 'identity'>, unknown>;

/**
 * Reads a request's body and undoes its encoding. Never holds more than `limit` bytes of either form.
 * @param length declared length in bytes, `null` if it comes in chunks.
 * @param share counts what is held; the caller releases it.
 */
export async function readBody(
  request: IncomingMessage,
  encoding: Encoding,
  length: number | null,
  limit: number,
  share: Share,
): Promise<BodyResult> {
  const read = await readBytes(request, length, limit, share);
  if (encoding === 'identity' || !read.ok) return read;
  // Whoever was answered while it waited needs it no more.
  const upTo = async (max: number): Promise<BodyResult> =>
    request.socket.writable ? decompress(read.body, encoding, max, share) : { ok: false, code: 'gone' };
  const likely = Math.min(limit, Math.max(LIKELY_BYTES, read.body.length * LIKELY_RATIO));
  const hasWindow = encoding === 'br' || encoding === 'zstd';
  const first = await (hasWindow ? WINDOWED.add(() => upTo(likely)) : upTo(likely));
  if (first.ok || first.code !== 'body_too_large' || likely === limit) return first;
  return LARGE.add(() => upTo(limit));
}

/**
 * Ends the reading, so that what is held of the body is let go: once its answer is written, node tells nobody that the
 * rest never came. An error of the stream is the way that raw-body knows. Does nothing when the body is complete.
 */
export function stopReading(request: IncomingMessage, reason: string): void {
  if (request.listenerCount('error') > 0) request.emit('error', new Error(reason));
}

async function readBytes(
  request: IncomingMessage,
  length: number | null,
  limit: number,
  share: Share,
): Promise<BodyResult> {
  let refusal: BodyResult | null = null;
  let pieces = 0;
  let bytes = 0;
  const count = (chunk: Buffer): void => {
    if (refusal !== null) return;
    pieces += 1;
    bytes += chunk.length;
    if (!share.take(chunk.length + PIECE_BYTES)) refusal = CROWDED;
    else if (pieces > FREE_PIECES && bytes < pieces * MIN_PIECE) refusal = CRUMBLED;
    if (refusal !== null) stopReading(request, refusal.detail);
  };
  request.on('data', count);
  try {
    return { ok: true, body: await getRawBody(request, { length, limit }) };
  } catch (error) {
    return refusal ?? refusalOf(error, limit);
  } finally {
    request.off('data', count);
  }
}

function refusalOf(error: unknown, limit: number): BodyResult {
  const type = error instanceof Error && 'type' in error ? error.type : null;
  if (type === 'entity.too.large')
    return { ok: false, code: 'body_too_large', detail: `more than ${limit} bytes` };
  if (type === 'request.size.invalid') {
    return { ok: false, code: 'body_malformed', detail: 'the body is not as long as Content-Length says' };
  }
  return { ok: false, code: 'gone' };
}

async function decompress(
  bytes: Buffer,
  encoding: Exclude<Encoding, 'identity'>,
  limit: number,
  share: Share,
): Promise<BodyResult> {
  if (!share.take(limit)) return CROWDED;
  try {
    const body = await DECOMPRESS[encoding](bytes, { maxOutputLength: limit });
    share.give(limit - body.length);
    return { ok: true, body };
  } catch (error) {
    share.give(limit);
    if (error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') {
      return { ok: false, code: 'body_too_large', detail: `more than ${limit} bytes when decompressed` };
    }
    return { ok: false, code: 'body_malformed', detail: `the body is not ${encoding}` };
  }
}
