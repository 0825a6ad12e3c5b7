import type { IncomingMessage } from 'node:http';
import { getRawBody } from 'raw-body';
import type { Share } from './budget.ts';
import { skipBody } from './parser.ts';

export interface Bytes {
  readonly ok: true;
  readonly body: Buffer;
}

export type Refusal =
  | {
      readonly ok: false;
      readonly code:
        | 'body_too_large'
        | 'body_ratio_exceeded'
        | 'body_malformed'
        | 'body_in_pieces'
        | 'overloaded'
        | 'address_over_budget';
      readonly detail: string;
    }
  /** The sender went away, or was cut off, before the body was complete. */
  | { readonly ok: false; readonly code: 'gone' };

export const GONE: Refusal = { ok: false, code: 'gone' };
export const CROWDED: Refusal = {
  ok: false,
  code: 'overloaded',
  detail: 'too many bodies are being received',
};
export const FORGERIES = {
  ok: false,
  code: 'address_over_budget',
  detail: 'try again later, or from another address',
} as const satisfies Refusal;
const CRUMBLED: Refusal = {
  ok: false,
  code: 'body_in_pieces',
  detail: 'the body arrived in too many small pieces',
};
const INCOMPLETE: Refusal = {
  ok: false,
  code: 'body_malformed',
  detail: 'the body length differs from Content-Length',
};

/**
 * What a piece takes beside its bytes: memory, and as much work as so many bytes. Beyond the free ones, pieces must be of this
 * size on average; packets are far above it.
 */
const PIECE_BYTES = 256;
const FREE_PIECES = 64;

/**
 * Reads the bytes of a request's body as they travel. Almost all bodies are plain and declare their length: reading those here
 * takes less of the receiving thread than raw-body does, which reads the others.
 * @param length declared length of a plain body, at most `limit`; null for one that is compressed or comes in chunks
 * @param share counts what is held; the caller releases it.
 * @param done called once. By a callback, for a promise would have every body wait for another turn.
 */
export function readBytes(
  request: IncomingMessage,
  length: number | null,
  limit: number,
  share: Share,
  done: (result: Bytes | Refusal) => void,
): void {
  const end = (result: Bytes | Refusal): void => {
    // What is left of the body is for whoever answers to deal with.
    if (!result.ok && !request.complete) skipBody(request);
    done(result);
  };
  if (length === null) readToEnd(request, limit, share, end);
  else readDeclared(request, length, share, end);
}

function readDeclared(
  request: IncomingMessage,
  length: number,
  share: Share,
  done: (result: Bytes | Refusal) => void,
): void {
  let pieces: Buffer<ArrayBuffer>[] = [];
  let bytes = 0;
  let isDone = false;
  const end = (result: Bytes | Refusal): void => {
    if (isDone) return;
    isDone = true;
    pieces = [];
    if (!result.ok) {
      request.off('data', add).off('end', complete).off('close', leave).off('error', leave);
      request.pause();
    }
    done(result);
  };
  const add = (piece: Buffer<ArrayBuffer>): void => {
    pieces.push(piece);
    bytes += piece.length;
    const refusal = count(piece, share);
    if (refusal !== null) end(refusal);
  };
  const complete = (): void => end(bytes === length ? { ok: true, body: joined(pieces) } : INCOMPLETE);
  const leave = (): void => end(GONE);
  request.on('data', add).on('end', complete).on('close', leave).on('error', leave);
}

function readToEnd(
  request: IncomingMessage,
  limit: number,
  share: Share,
  done: (result: Bytes | Refusal) => void,
): void {
  let refusal: Refusal = GONE;
  const add = (piece: Buffer): void => {
    const counted = count(piece, share);
    if (counted === null) return;
    refusal = counted;
    stopReading(request, 'refused');
  };
  request.on('data', add);
  getRawBody(request, { limit }, (error, body) => {
    request.off('data', add);
    if (error === null) done({ ok: true, body });
    else if (error.type === 'entity.too.large')
      done({ ok: false, code: 'body_too_large', detail: `more than ${limit} bytes` });
    else done(refusal);
  });
}

/** Counts a piece of a body. @returns why no more of it is read; null when more may come */
function count({ length }: Buffer, share: Share): Refusal | null {
  share.pieces += 1;
  share.work += length + PIECE_BYTES;
  if (!share.take(length + PIECE_BYTES)) return CROWDED;
  const overhead = share.pieces * PIECE_BYTES;
  const bytes = share.work - overhead;
  return share.pieces > FREE_PIECES && bytes < overhead ? CRUMBLED : null;
}

/** Gives the pieces' memory back at once: to do it later, the garbage collector would go through everything there is. */
function joined(pieces: readonly Buffer<ArrayBuffer>[]): Buffer {
  const [only] = pieces;
  if (only !== undefined && pieces.length === 1) return only;
  const whole = Buffer.concat(pieces);
  for (const { buffer, length } of pieces) if (buffer.byteLength === length) buffer.transfer(0);
  return whole;
}

/**
 * Ends the reading, so that what is held of the body is let go: once its answer is written, node tells nobody that the
 * rest never came. Does nothing when the body is complete.
 */
export function stopReading(request: IncomingMessage, reason: string): void {
  if (request.listenerCount('error') > 0) request.emit('error', new Error(reason));
}
