import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, constants, gunzip, inflate, zstdDecompress } from 'node:zlib';
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
  return decompress(read.body, encoding, limit, share);
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
    // Ends the reading in the way that raw-body knows: as an error of its stream.
    if (refusal !== null) request.emit('error', new Error(refusal.detail));
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
  try {
    const body = await DECOMPRESS[encoding](bytes, { maxOutputLength: limit });
    if (!share.take(body.length)) return CROWDED;
    return { ok: true, body };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') {
      return { ok: false, code: 'body_too_large', detail: `more than ${limit} bytes when decompressed` };
    }
    return { ok: false, code: 'body_malformed', detail: `the body is not ${encoding}` };
  }
}
