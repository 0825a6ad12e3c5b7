import type { IncomingMessage } from 'node:http';
import PQueue from 'p-queue';
import { getRawBody } from 'raw-body';
import type { Share } from './budget.ts';
import type { Encoding } from './content.ts';
import {
  type Compression,
  decompress,
  type Decompressed,
  decompressSmall,
  mostOutput,
} from './decompress.ts';

export type BodyResult =
  | { readonly ok: true; readonly body: Buffer }
  | {
      readonly ok: false;
      readonly code:
        'body_too_large' | 'body_ratio_exceeded' | 'body_malformed' | 'body_in_pieces' | 'overloaded';
      readonly detail: string;
    }
  /** The sender went away, or was cut off, before the body was complete. */
  | { readonly ok: false; readonly code: 'gone' };

type Refusal = Extract<BodyResult, { detail: string }>;

const GONE: BodyResult = { ok: false, code: 'gone' };
const CROWDED: Refusal = { ok: false, code: 'overloaded', detail: 'too many bodies are being received' };
const CRUMBLED: Refusal = {
  ok: false,
  code: 'body_in_pieces',
  detail: 'the body comes in too many small pieces',
};

/** How large bodies may become. */
export interface BodyLimits {
  readonly maxBodyBytes: number;
  readonly maxDecompressionRatio: number;
}

/**
 * Memory that a piece takes beside its bytes. Without a bound on pieces, a body sent in chunks of one byte would take a
 * hundred times the limit, and a thousand times the work. Beyond the free ones, pieces must be of this size on average;
 * packets are far above it.
 */
const PIECE_BYTES = 256;
const FREE_PIECES = 512;
const MIN_PIECE = 64;
/** What such a body counts as having cost when it is refused: node has cut a whole packet into pieces before it says so. */
const PIECES_WORK = 4 * 1024 * 1024;

/** A compressed body may become this large whatever its ratio, and one of a tenth of that goes straight through. */
const SMALL_BYTES = 64 * 1024;
const LIKELY_RATIO = 8;
/** The others go a few at a time: each may take the whole limit. */
const LARGE = new PQueue({ concurrency: 4 });

/** How many bodies wait to be decompressed. */
export function waitingBodies(): number {
  return LARGE.size;
}

/**
 * Reads a request's body and undoes its encoding. Never holds more than `maxBodyBytes` of either form. Nobody has verified
 * it yet, and a few bytes can ask for the whole limit, so what they may become is bound by their number.
 * @param length declared length in bytes, `null` if it comes in chunks.
 * @param share counts what is held; the caller releases it.
 */
export async function readBody(
  request: IncomingMessage,
  encoding: Encoding,
  length: number | null,
  { maxBodyBytes, maxDecompressionRatio }: BodyLimits,
  share: Share,
): Promise<BodyResult> {
  const read = await readBytes(request, length, maxBodyBytes, share);
  if (encoding === 'identity' || !read.ok) return read;
  const { body: bytes } = read;
  const most = Math.min(maxBodyBytes, Math.max(SMALL_BYTES, bytes.length * maxDecompressionRatio));
  if (bytes.length * LIKELY_RATIO <= SMALL_BYTES) {
    const limit = Math.min(most, SMALL_BYTES);
    const done = decompressSmall(bytes, encoding, limit);
    share.work += workOf(done, encoding, limit);
    if (done.ok) return share.take(done.body.length) ? done : CROWDED;
    if (!done.tooLarge || limit === most) return refusalFor(done, encoding, limit, maxBodyBytes);
  }
  return LARGE.add(async () => {
    // Whoever was answered while it waited needs it no more.
    if (!request.socket.writable) return GONE;
    if (!share.take(most)) return CROWDED;
    const done = await decompress(bytes, encoding, most);
    share.work += workOf(done, encoding, most);
    share.give(done.ok ? most - done.body.length : most);
    return done.ok ? done : refusalFor(done, encoding, most, maxBodyBytes);
  });
}

function workOf(done: Decompressed, encoding: Compression, limit: number): number {
  return done.ok ? done.body.length : mostOutput(encoding, limit);
}

function refusalFor(
  { tooLarge }: Extract<Decompressed, { ok: false }>,
  encoding: Compression,
  limit: number,
  maxBodyBytes: number,
): Refusal {
  if (!tooLarge) return { ok: false, code: 'body_malformed', detail: `the body is not ${encoding}` };
  if (limit < maxBodyBytes) {
    const detail = `more than ${limit} bytes when decompressed; server.maxDecompressionRatio sets that`;
    return { ok: false, code: 'body_ratio_exceeded', detail };
  }
  return { ok: false, code: 'body_too_large', detail: `more than ${limit} bytes when decompressed` };
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
  let refusal: Refusal | null = null;
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
    share.work += refusal === CRUMBLED ? PIECES_WORK : bytes + pieces * PIECE_BYTES;
  }
}

function refusalOf(error: unknown, limit: number): BodyResult {
  const type = error instanceof Error && 'type' in error ? error.type : null;
  if (type === 'entity.too.large')
    return { ok: false, code: 'body_too_large', detail: `more than ${limit} bytes` };
  if (type === 'request.size.invalid') {
    return { ok: false, code: 'body_malformed', detail: 'the body is not as long as Content-Length says' };
  }
  return GONE;
}
