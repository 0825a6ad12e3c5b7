import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { CATALOGUE } from '../core/errors.ts';
import { declaredLength } from './examine.ts';
import type { Outcome, ProblemCode } from './outcome.ts';

/** An answer, ready to be written. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
}

/** Status of each outcome; the catalogue has the status of a problem. */
const STATUS = { accepted: 202, duplicate: 200, erased: 202, quarantined: 202 } as const;

const JSON_TYPE = 'application/json';
const PROBLEM_TYPE = 'application/problem+json';

/**
 * @param quarantineStatus 422 shows the sender that its event was invalid; it then sends it again.
 * @param retryAfter milliseconds, for a 429 or 503 whose outcome has none
 */
export function answerOf(
  outcome: Exclude<Outcome, { kind: 'gone' }>,
  quarantineStatus: 202 | 422,
  retryAfter: number,
): Answer {
  switch (outcome.kind) {
    case 'accepted':
    case 'duplicate':
    case 'erased':
      return json(
        STATUS[outcome.kind],
        `{"status":"${outcome.kind}","id":${JSON.stringify(outcome.id)}}`,
        outcome.kind === 'accepted' ? outcome.receipt : undefined,
      );
    case 'quarantined': {
      const { id, reasons, receipt } = outcome;
      if (quarantineStatus === 422) {
        const detail = reasons.map((reason) => reason.detail).join('; ');
        return problemAnswer('unfit', detail, retryAfter, {
          id,
          reasons: reasons.map((reason) => reason.code),
        });
      }
      const body = JSON.stringify({ status: 'quarantined', id, code: reasons[0].code });
      return json(STATUS.quarantined, body, receipt);
    }
    case 'problem':
      return problemAnswer(outcome.code, outcome.detail, outcome.retryAfterMs ?? retryAfter);
    default:
      return outcome satisfies never;
  }
}

/** Problem details, RFC 9457. */
function problemAnswer(code: ProblemCode, detail: string, retryAfter: number, more: object = {}): Answer {
  const { status, title } = CATALOGUE[code];
  const body = JSON.stringify({ type: `urn:millrace:problem:${code}`, title, status, code, detail, ...more });
  const headers: Record<string, string | number> = {
    'content-type': PROBLEM_TYPE,
    'content-length': Buffer.byteLength(body),
  };
  if (status === 503 || status === 429) headers['retry-after'] = Math.max(1, Math.ceil(retryAfter / 1000));
  return { status, headers, body };
}

/** Writes an answer, unless the sender is gone. @param close closes the connection after it */
export function write(response: ServerResponse, answer: Answer, close: boolean): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(answer.status, close ? { ...answer.headers, connection: 'close' } : answer.headers);
  response.end(answer.body);
}

/** All of it is ASCII: it has as many bytes as characters. */
function json(status: number, body: string, receipt?: string): Answer {
  const length = body.length;
  const headers =
    receipt === undefined
      ? { 'content-type': JSON_TYPE, 'content-length': length }
      : { 'content-type': JSON_TYPE, 'content-length': length, 'millrace-receipt': receipt };
  return { status, headers, body };
}

/** An unread rest of a body up to this size is read and dropped, so that the connection can be used again. */
const SMALL_REST = 64 * 1024;

/** Whether so much of the body is unread that closing the connection is better. */
export function hasUnreadBody(request: IncomingMessage): boolean {
  if (request.readableEnded) return false;
  // Node drops only a body that was not read at all; half a body would block the connection.
  if (request.readableDidRead) return true;
  if (request.complete) return false;
  const length = declaredLength(request.headers);
  return length === null || length > SMALL_REST;
}

/**
 * Closes only our side of the connection at first. Closing a socket with unread bytes resets the connection, and a reset can
 * overtake the answer: the sender would see a broken pipe instead of our 413. What still arrives is dropped, until the sender
 * has closed its side or its time is over.
 */
export function lingerOnClose(request: IncomingMessage, clock: Clock, lingerTimeout: number): void {
  const { socket } = request;
  socket.destroySoon = () => {
    socket.end();
    request.resume();
    const cancel = clock.after(lingerTimeout, () => socket.destroy());
    socket.once('close', cancel);
  };
}
