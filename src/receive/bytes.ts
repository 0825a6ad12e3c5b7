import type { IncomingMessage } from 'node:http';
import { getRawBody } from 'raw-body';
import type { Reservation } from './budget.ts';
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
  /** The connection ended before the body was complete. */
  | { readonly ok: false; readonly code: 'gone' };

export const GONE: Refusal = { ok: false, code: 'gone' };
export const CROWDED: Refusal = {
  ok: false,
  code: 'overloaded',
  detail: 'too many bodies are being received',
};
export const OVER_BUDGET = {
  ok: false,
  code: 'address_over_budget',
  detail: 'try again later, or from another address',
} as const satisfies Refusal;
const TOO_MANY_PIECES: Refusal = {
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
 * Memory of a piece besides its bytes, and its work in bytes. After the first `FREE_PIECES`, pieces must have this size on
 * average; packets are much larger.
 */
const PIECE_BYTES = 256;
const FREE_PIECES = 64;

/**
 * Reads the bytes of a request's body, still compressed. Almost all bodies are plain and declare their length: reading them
 * here takes less time of the receiving thread than raw-body, which reads the others.
 * @param length declared length of a plain body, at most `limit`; null for one that is compressed or comes in chunks
 * @param memory the caller releases it
 * @param done called once; a promise would delay each body by a turn
 */
export function readBytes(
  request: IncomingMessage,
  length: number | null,
  limit: number,
  memory: Reservation,
  done: (result: Bytes | Refusal) => void,
): void {
  const end = (result: Bytes | Refusal): void => {
    // The answer decides what happens to the rest of the body.
    if (!result.ok && !request.complete) skipBody(request);
    done(result);
  };
  if (length === null) readToEnd(request, limit, memory, end);
  else readDeclared(request, length, memory, end);
}

function readDeclared(
  request: IncomingMessage,
  length: number,
  memory: Reservation,
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
    const refusal = count(piece, memory);
    if (refusal !== null) end(refusal);
  };
  const complete = (): void => end(bytes === length ? { ok: true, body: joined(pieces) } : INCOMPLETE);
  const leave = (): void => end(GONE);
  request.on('data', add).on('end', complete).on('close', leave).on('error', leave);
}

function readToEnd(
  request: IncomingMessage,
  limit: number,
  memory: Reservation,
  done: (result: Bytes | Refusal) => void,
): void {
  let refusal: Refusal = GONE;
  const add = (piece: Buffer): void => {
    const counted = count(piece, memory);
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

/** Counts a piece of a body. @returns the reason to read no more; null to continue */
function count({ length }: Buffer, memory: Reservation): Refusal | null {
  memory.pieces += 1;
  memory.work += length + PIECE_BYTES;
  if (!memory.take(length + PIECE_BYTES)) return CROWDED;
  const overhead = memory.pieces * PIECE_BYTES;
  const bytes = memory.work - overhead;
  return memory.pieces > FREE_PIECES && bytes < overhead ? TOO_MANY_PIECES : null;
}

/** Frees the pieces' memory at once: the garbage collector would visit the whole heap for it. */
function joined(pieces: readonly Buffer<ArrayBuffer>[]): Buffer {
  const [only] = pieces;
  if (only !== undefined && pieces.length === 1) return only;
  const whole = Buffer.concat(pieces);
  for (const { buffer, length } of pieces) if (buffer.byteLength === length) buffer.transfer(0);
  return whole;
}

/**
 * Ends the reading, so that the pieces of the body are freed: after the answer, node emits no event for a rest that never
 * comes. Does nothing when the body is complete.
 */
export function stopReading(request: IncomingMessage, reason: string): void {
  if (request.listenerCount('error') > 0) request.emit('error', new Error(reason));
}
