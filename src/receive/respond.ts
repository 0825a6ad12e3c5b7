import type { ServerResponse } from 'node:http';
import { CATALOGUE } from '../core/errors.ts';
import type { Outcome, ProblemCode } from './outcome.ts';

/** An answer, ready to be written. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
}

/** Status of each outcome; a problem has the status of its code in the catalogue. */
const STATUS = { accepted: 202, duplicate: 200, erased: 202, quarantined: 202 } as const;

const JSON_TYPE = 'application/json';
const PROBLEM_TYPE = 'application/problem+json';

/**
 * @param quarantineStatus 422 tells the sender that its event was invalid; it will then send it again.
 * @param retryAfter milliseconds, for a 429 or 503 whose outcome does not say.
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

/** Writes an answer unless the other side is gone. `close` ends the connection with it. */
export function write(response: ServerResponse, answer: Answer, close: boolean): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(answer.status, close ? { ...answer.headers, connection: 'close' } : answer.headers);
  response.end(answer.body);
}

/** Ids are ASCII and so is the rest: the length in characters is the length in bytes. */
function json(status: number, body: string, receipt?: string): Answer {
  const length = body.length;
  const headers =
    receipt === undefined
      ? { 'content-type': JSON_TYPE, 'content-length': length }
      : { 'content-type': JSON_TYPE, 'content-length': length, 'millrace-receipt': receipt };
  return { status, headers, body };
}
