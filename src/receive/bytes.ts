import type { IncomingMessage } from 'node:http';
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
 * Reads the bytes of a request's body as they travel, at most `limit` of them.
 * @param length declared length in bytes, `null` if it comes in chunks.
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
  let pieces: Buffer<ArrayBuffer>[] = [];
  let bytes = 0;
  let isDone = false;
  const end = (result: Bytes | Refusal): void => {
    if (isDone) return;
    isDone = true;
    share.work += bytes + pieces.length * PIECE_BYTES;
    pieces = [];
    if (!result.ok) {
      // Nothing more is taken in. What is left of the body is for whoever answers to deal with.
      request.off('data', add).off('end', complete).off('close', leave).off('error', leave);
      request.pause();
      if (!request.complete) skipBody(request);
    }
    done(result);
  };
  const add = (piece: Buffer<ArrayBuffer>): void => {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > limit) end({ ok: false, code: 'body_too_large', detail: `more than ${limit} bytes` });
    else if (!share.take(piece.length + PIECE_BYTES)) end(CROWDED);
    else if (pieces.length > FREE_PIECES && bytes < pieces.length * PIECE_BYTES) end(CRUMBLED);
  };
  const complete = (): void => {
    const [only] = pieces;
    if (length !== null && length !== bytes) end(INCOMPLETE);
    else end({ ok: true, body: pieces.length === 1 && only !== undefined ? only : joined(pieces) });
  };
  const leave = (): void => end(GONE);
  request.on('data', add).on('end', complete).on('close', leave).on('error', leave);
}

/** Gives the pieces' memory back at once: to do it later, the garbage collector would go through everything there is. */
function joined(pieces: readonly Buffer<ArrayBuffer>[]): Buffer {
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
